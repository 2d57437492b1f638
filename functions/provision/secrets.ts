/** The Secrets that a Proxy refers to, read fresh: what they hold stays in memory, only digests leave this file's results. */

import { sha256 } from '#shared/app/digest.ts';
import { replaceWorthy, type Desired } from '#shared/domain/desired.ts';
import { MISSING_SECRET } from '#shared/domain/observed.ts';
import { CLOUD_INIT_LABEL, CREDENTIALS_LABEL } from '#shared/domain/proxy.ts';
import type { Cluster, ProxyObject, SecretReading } from '#shared/kubernetes/cluster.ts';

import type { Inputs, InputTrouble } from './plan.ts';

/** What a machine is given. Never logged, stored beside credentials, or put into a message. */
export interface Material {
  readonly userData?: string;
  readonly credentials?: { readonly username: string; readonly password: string };
}

/** Compute Engine's bound of one metadata value. */
const MAX_USER_DATA = 262_144;
/** Enough of a sha256 to tell contents apart, too little to stand for them. */
const VERSION_LENGTH = 16;

const CONTROL = /\p{Cc}/u;

const trouble = (
  reason: InputTrouble['reason'],
  message: string,
  judged = true,
): { readonly trouble: InputTrouble } => ({ trouble: { kind: 'trouble', reason, message, judged } });

type Found<T> = { readonly trouble: InputTrouble } | { readonly value: T };

interface Use {
  readonly name: string;
  readonly label: string;
  readonly what: string;
}

type Data = Readonly<Record<string, Uint8Array>>;

const usable = (reading: SecretReading, { name, label, what }: Use): Found<Data> => {
  switch (reading.kind) {
    case 'missing':
      return trouble(
        'SecretMissing',
        `Secret ${name} for ${what} does not exist in this namespace. Create it, with the label ${label}=true.`,
      );
    case 'unreadable':
      return trouble(
        'SecretUnreadable',
        `Secret ${name} for ${what} cannot be read: ${reading.message} An operator has to let provision get Secrets in this namespace.`,
        false,
      );
    case 'found':
      return reading.labels[label] === 'true'
        ? { value: reading.data }
        : trouble(
            'SecretNotLabelled',
            `Secret ${name} exists but does not carry the label ${label}=true, so it is not used for ${what}. If it may be used, set it: kubectl label secret ${name} ${label}=true`,
          );
    default:
      return reading satisfies never;
  }
};

const textOf = (data: Data, key: string, { name, what }: Use): Found<string> => {
  const bytes = data[key];
  if (!bytes || bytes.length === 0)
    return trouble(
      'SecretKeyMissing',
      `Secret ${name} for ${what} has no key ${key}, or it is empty. Add it to the Secret.`,
    );
  try {
    return { value: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return trouble(
      'InvalidSpec',
      `Key ${key} of Secret ${name} is not text in UTF-8. Store it as plain text, neither compressed nor encoded twice.`,
    );
  }
};

const checkedUserData = (text: string): Found<Material> =>
  new TextEncoder().encode(text).length > MAX_USER_DATA
    ? trouble(
        'InvalidSpec',
        `The cloud-init user-data is larger than ${MAX_USER_DATA} bytes. Shorten it, or have it fetch the rest at boot (#include).`,
      )
    : { value: { userData: text } };

type Read = (use: Use) => Promise<Found<Data>>;

const cloudInit = async (spec: ProxyObject['spec'], read: Read): Promise<Found<Material>> => {
  const { inline, secretRef } = spec.cloudInit ?? {};
  if (inline !== undefined) return checkedUserData(inline);
  if (!secretRef) return { value: {} };
  const use: Use = { name: secretRef.name, label: CLOUD_INIT_LABEL, what: 'cloudInit' };
  const data = await read(use);
  if ('trouble' in data) return data;
  const text = textOf(data.value, secretRef.key ?? 'user-data', use);
  return 'trouble' in text ? text : checkedUserData(text.value);
};

const credentials = async (spec: ProxyObject['spec'], read: Read): Promise<Found<Material>> => {
  const { credentialsSecretRef: ref } = spec;
  if (!ref) return { value: {} };
  const use: Use = { name: ref.name, label: CREDENTIALS_LABEL, what: 'credentials' };
  const data = await read(use);
  if ('trouble' in data) return data;
  const username = textOf(data.value, 'username', use);
  if ('trouble' in username) return username;
  const password = textOf(data.value, 'password', use);
  if ('trouble' in password) return password;
  if (username.value.includes(':') || CONTROL.test(username.value + password.value))
    return trouble(
      'InvalidSpec',
      `Secret ${ref.name}: username must not contain a colon, and neither of the two a line break or control character. Change them in the Secret.`,
    );
  return { value: { credentials: { username: username.value, password: password.value } } };
};

const digests = ({ userData, credentials: given }: Material) => ({
  ...(userData === undefined ? {} : { userDataDigest: sha256(userData) }),
  ...(given ? { credentialsDigest: sha256(JSON.stringify([given.username, given.password])) } : {}),
});

const resolvedInputs = (
  desired: Desired,
  material: Material,
  secretVersions: Readonly<Record<string, string>>,
): Inputs => {
  const inputs = digests(material);
  return {
    kind: 'resolved',
    hash: desired.machine ? sha256(replaceWorthy(desired.machine, inputs)).slice(0, VERSION_LENGTH) : '',
    credentialsVersion: inputs.credentialsDigest?.slice(0, VERSION_LENGTH) ?? '',
    secretVersions,
  };
};

/** Reads every referenced Secret. Trouble with one is data; an outage of the cluster throws. */
export const resolveInputs = async (
  proxy: ProxyObject,
  desired: Desired,
  cluster: Pick<Cluster, 'readSecret'>,
): Promise<{ readonly inputs: Inputs; readonly material: Material }> => {
  const secretVersions: Record<string, string> = {};
  const read: Read = async (use) => {
    const reading = await cluster.readSecret(proxy.metadata.namespace, use.name);
    if (reading.kind !== 'unreadable')
      secretVersions[use.name] = reading.kind === 'found' ? reading.version : MISSING_SECRET;
    return usable(reading, use);
  };
  // One after the other, and both: every referenced Secret has its version noted.
  const init = await cloudInit(proxy.spec, read);
  const access = await credentials(proxy.spec, read);
  const troubles = [init, access].flatMap((found) => ('trouble' in found ? [found.trouble] : []));
  const unread = troubles.find(({ judged }) => !judged) ?? troubles[0];
  if (unread) return { inputs: { ...unread, secretVersions }, material: {} };
  const material: Material = {
    ...('value' in init ? init.value : {}),
    ...('value' in access ? access.value : {}),
  };
  return { inputs: resolvedInputs(desired, material, secretVersions), material };
};
