/** Which Secrets are referred to, by whom, at which version, and which one is to be read next. */

import type { ProxyView } from './decide.ts';

export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

interface Reference extends SecretName {
  readonly users: Set<string>;
  version?: string | undefined;
  /** Monotonic milliseconds of the last read. */
  readAt: number;
}

const keyOf = ({ namespace, name }: SecretName): string => `${namespace}/${name}`;

export type SecretIndex = ReturnType<typeof makeSecretIndex>;

/** Holds exactly the Secrets that some Proxy refers to, in the order in which they are due. */
export const makeSecretIndex = () => {
  const references = new Map<string, Reference>();

  const release = (view: ProxyView, name: string): void => {
    const key = keyOf({ namespace: view.ref.namespace, name });
    const reference = references.get(key);
    reference?.users.delete(view.ref.uid);
    if (reference?.users.size === 0) references.delete(key);
  };

  const claim = (view: ProxyView, name: string): void => {
    const secret = { namespace: view.ref.namespace, name };
    const known = references.get(keyOf(secret));
    if (known) known.users.add(view.ref.uid);
    else references.set(keyOf(secret), { ...secret, users: new Set([view.ref.uid]), readAt: -Infinity });
  };

  const moveToEnd = (secret: SecretName, readAt: number): Reference | undefined => {
    const key = keyOf(secret);
    const reference = references.get(key);
    if (!reference) return undefined;
    references.delete(key);
    references.set(key, reference);
    reference.readAt = readAt;
    return reference;
  };

  return {
    /** Moves a Proxy's references from what it was to what it is; undefined = it is not there. */
    update(before: ProxyView | undefined, after: ProxyView | undefined): void {
      for (const name of after?.secrets ?? []) if (after) claim(after, name);
      for (const name of before?.secrets ?? []) {
        if (before && !after?.secrets.includes(name)) release(before, name);
      }
    },

    /** Known versions by name, of the Secrets that this Proxy refers to. */
    versionsFor({ ref, secrets }: ProxyView): Readonly<Record<string, string>> {
      return Object.fromEntries(
        secrets.flatMap((name) => {
          const version = references.get(keyOf({ namespace: ref.namespace, name }))?.version;
          return version === undefined ? [] : [[name, version]];
        }),
      );
    },

    /** The Secret whose last read is the oldest; undefined when there is none. */
    next(): (SecretName & { readonly readAt: number }) | undefined {
      return references.values().next().value;
    },

    /** To the end of the line, with what was known. */
    postpone(secret: SecretName, readAt: number): void {
      moveToEnd(secret, readAt);
    },

    /** Records a read, undefined = no version could be had; returns the UIDs of its users when the version is news. */
    record(secret: SecretName, version: string | undefined, readAt: number): readonly string[] {
      const reference = moveToEnd(secret, readAt);
      if (!reference) return [];
      const news = reference.version !== version;
      reference.version = version;
      return news ? [...reference.users] : [];
    },

    get size(): number {
      return references.size;
    },
  };
};
