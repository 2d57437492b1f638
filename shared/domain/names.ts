/** Names and labels of machines: derived from what they are, so that a retry meets its own machine. */

/** Installation ids: short enough that a machine name stays within 63 characters. */
export const INSTALLATION_ID = /^[a-z][a-z0-9]{2,15}$/;

const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Labels that every machine carries from its create call on. Keys and values fit GCE's label rule and Kubernetes'. */
export const MACHINE_LABELS = {
  installation: 'egress-installation',
  uid: 'egress-proxy-uid',
  hash: 'egress-proxy-hash',
} as const;

/** A Kubernetes UID in 25 characters of base 36. Throws RangeError for anything that is not a UID. */
export const uidBase36 = (uid: string): string => {
  if (!UID.test(uid)) throw new RangeError(`not a Kubernetes UID: ${JSON.stringify(uid)}`);
  return BigInt(`0x${uid.replaceAll('-', '')}`)
    .toString(36)
    .padStart(25, '0');
};

/** `<installation>-<uid base36>-<hash8>-<incarnation>`: at most 63 characters for any installation id and 10^11 incarnations. */
export const machineName = (installation: string, uid: string, hash: string, incarnation: number): string =>
  `${installation}-${uidBase36(uid)}-${hash.slice(0, 8)}-${incarnation}`;

/** Names of every machine of an installation start with this. */
export const machinePrefix = (installation: string): string => `${installation}-`;
