/** What the watcher remembers: only in memory, one entry per Proxy, gone with the Proxy. The truth is in the cluster. */

import type { ProxyView } from './decide.ts';
import { makeSecretIndex } from './secret-index.ts';

export interface Entry {
  view: ProxyView;
  gone: boolean;
  /** The newest happening to one of its Pods. */
  machine?: string;
  /** When (ms) each gap was last forwarded. */
  readonly forwarded: Map<string, number>;
  /** How often the newest nudge was repeated, since nothing showed that it was dealt with. */
  unanswered?: number;
  /** `traceparent` of the newest nudge. */
  traceparent?: string | undefined;
}

export type Known = ReturnType<typeof makeKnown>;

/** `*` covers every namespace. */
const inScope = (scope: string, { ref }: ProxyView): boolean => scope === '*' || scope === ref.namespace;

export const makeKnown = () => {
  const entries = new Map<string, Entry>();
  const secrets = makeSecretIndex();

  const put = (view: ProxyView, gone: boolean): void => {
    const entry = entries.get(view.ref.uid);
    secrets.update(entry && !entry.gone ? entry.view : undefined, gone ? undefined : view);
    if (entry) {
      entry.view = view;
      entry.gone = gone;
    } else entries.set(view.ref.uid, { view, gone, forwarded: new Map() });
  };

  return {
    secrets,
    get: (uid: string): Entry | undefined => entries.get(uid),

    /** The Proxy as it is now. */
    seen(view: ProxyView): void {
      put(view, false);
    },

    /** The Proxy is no longer there; how it was last seen says whether that was expected. */
    vanished(view: ProxyView): void {
      put(entries.get(view.ref.uid)?.view ?? view, true);
    },

    /** Something happened to a Pod of this Proxy; false when the Proxy is not known, or not any more. */
    machineChanged(uid: string, version: string): boolean {
      const entry = entries.get(uid);
      if (!entry || entry.gone) return false;
      entry.machine = version;
      return true;
    },

    /** Proxies of a scope that a complete list no longer holds. */
    missingFrom(scope: string, listed: ReadonlySet<string>): readonly ProxyView[] {
      return [...entries.values()]
        .filter(({ view, gone }) => !gone && inScope(scope, view) && !listed.has(view.ref.uid))
        .map(({ view }) => view);
    },

    forget(uid: string): void {
      const entry = entries.get(uid);
      if (entry && !entry.gone) secrets.update(entry.view, undefined);
      entries.delete(uid);
    },

    get size(): number {
      return entries.size;
    },
  };
};
