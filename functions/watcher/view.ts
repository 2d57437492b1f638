/** The part of a Proxy that the watcher remembers. */

import { labelsHash } from '#shared/domain/observed.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import type { ProxyView } from './decide.ts';

const secretNames = ({ cloudInit, credentialsSecretRef }: ProxyObject['spec']): readonly string[] => [
  ...new Set([cloudInit?.secretRef?.name, credentialsSecretRef?.name].filter((name) => name !== undefined)),
];

export const viewOf = ({ metadata, spec, status }: ProxyObject): ProxyView => ({
  ref: { namespace: metadata.namespace, name: metadata.name, uid: metadata.uid },
  generation: metadata.generation,
  labelsHash: labelsHash(metadata.labels),
  deleting: metadata.deletionTimestamp !== undefined,
  finalizers: metadata.finalizers ?? [],
  secrets: secretNames(spec),
  ...(status?.installation === undefined ? {} : { installation: status.installation }),
  ...(status?.observed === undefined ? {} : { observed: status.observed }),
});
