import { describe, expect, test } from 'vitest';

import { makeLog } from '#shared/app/log.ts';
import type { Connection } from '#shared/kubernetes/connection.ts';
import type { ApiReply } from '#shared/kubernetes/failure.ts';
import { openPodProvider } from '#shared/kubernetes/pods/provider.ts';
import { machineSpec } from '#test/compute/builders.ts';

const answering = (reply: ApiReply) => {
  const connection: Connection = {
    send: () => Promise.resolve(reply),
    stream: () => Promise.reject(new Error('nothing is watched here')),
    close: () => Promise.resolve(),
  };
  return openPodProvider(
    {
      installation: 'prod',
      namespaces: ['crawlers'],
      clock: { now: () => 0, monotonic: () => 0 },
      log: makeLog(() => undefined),
    },
    connection,
  );
};

const forbidden = (message: string): ApiReply => ({
  status: 403,
  text: JSON.stringify({ kind: 'Status', status: 'Failure', reason: 'Forbidden', message, code: 403 }),
});

const spec = machineSpec('prod', { kubernetes: { image: 'squid' } });
const created = (reply: ApiReply) => answering(reply).create(spec, 'crawlers', '1');

const SAID: Readonly<Record<string, readonly [message: string, code: string]>> = {
  'a right is missing': [
    'pods is forbidden: User "provision" cannot create resource "pods" in API group "" in the namespace "crawlers"',
    'Unauthorised',
  ],
  'a quota is used up': [
    'pods "x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3',
    'QuotaExceeded',
  ],
  'a quota was made a moment ago': [
    'pods "x" is forbidden: status unknown for quota: few, resources: pods',
    'Transient',
  ],
  'the namespace is going': [
    'pods "x" is forbidden: unable to create new content in namespace crawlers because it is being terminated',
    'Transient',
  ],
  'the namespace has no account yet': [
    'pods "x" is forbidden: error looking up service account crawlers/default: serviceaccount "default" not found',
    'Transient',
  ],
  'the Pod breaks the Pod Security Standard': [
    'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
    'InvalidSpec',
  ],
  'the Pod breaks a bound of the namespace': [
    'pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
    'InvalidSpec',
  ],
  'a rule of the cluster says no': [
    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not from there",
    'InvalidSpec',
  ],
};

describe('a Pod that is forbidden because', () => {
  test.each(Object.entries(SAID))('%s', async (_, [message, code]) => {
    await expect(created(forbidden(message))).rejects.toMatchObject({
      code,
      provider: { code: 'Forbidden', message },
    });
  });

  test('somebody on the way says so, is not judged by what he says', async () => {
    await expect(created({ status: 403, text: 'exceeded quota' })).rejects.toMatchObject({
      code: 'Unauthorised',
    });
  });
});
