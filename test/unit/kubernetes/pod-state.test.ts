import { describe, expect, test } from 'vitest';

import { ownerOf, toMachine } from '#shared/kubernetes/pods/machine.ts';
import { podSchema, type PodObject } from '#shared/kubernetes/pods/schema.ts';

const OWNER = {
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  name: 'internal-1',
  uid: 'owner-uid',
  controller: true,
};
const BEFORE = '2026-01-01T00:00:00Z';
const LATER = '2026-01-01T00:05:00Z';

interface Parts {
  readonly metadata?: object;
  readonly status?: object;
}

const ready = (status: string, more: object = {}) => ({ type: 'Ready', status, ...more });
const container = (state: object, restartCount = 0) => [{ name: 'proxy', restartCount, state }];
const SERVING = {
  phase: 'Running',
  podIP: '10.0.0.7',
  conditions: [ready('True', { lastTransitionTime: BEFORE })],
  containerStatuses: container({ running: { startedAt: BEFORE } }),
};

const aPod = ({ metadata = {}, status = {} }: Parts = {}): PodObject =>
  podSchema.parse({
    metadata: {
      name: 'prod-x-1',
      namespace: 'crawlers',
      uid: 'pod-uid',
      resourceVersion: '7',
      creationTimestamp: BEFORE,
      labels: {
        'egress-installation': 'prod',
        'egress-proxy-uid': 'owner-uid',
        'egress-proxy-hash': '0123456789abcdef',
      },
      ownerReferences: [OWNER],
      ...metadata,
    },
    spec: {},
    status: { ...SERVING, ...status },
  });

test('a Pod that runs and is ready is a running machine with the address of the Pod', () => {
  expect(toMachine(aPod())).toEqual({
    name: 'prod-x-1',
    zone: 'crawlers',
    instanceId: 'pod-uid',
    providerID: 'pod://crawlers/prod-x-1',
    state: 'running',
    address: '10.0.0.7',
    installation: 'prod',
    uid: 'owner-uid',
    hash: '0123456789abcdef',
    createdAt: Date.parse(BEFORE),
  });
});

type Row = readonly [pod: Parts, state: string, detail: string | undefined];

const ROWS: Readonly<Record<string, Row>> = {
  'row 63, W3: terminating, whatever phase and readiness say': [
    { metadata: { deletionTimestamp: LATER } },
    'stopping',
    'Terminating',
  ],
  'terminating, although it has failed': [
    { metadata: { deletionTimestamp: LATER }, status: { phase: 'Failed' } },
    'stopping',
    'Terminating',
  ],
  'row 61: failed, with an address that may be another one’s by now': [
    { status: { phase: 'Failed', reason: 'NodeShutdown', message: 'The node went down.' } },
    'failed',
    'NodeShutdown: The node went down.',
  ],
  'row 62: evicted, its address gone in the same event': [
    { status: { phase: 'Failed', reason: 'Evicted', message: 'Low on memory.', podIP: '' } },
    'failed',
    'Evicted: Low on memory.',
  ],
  'failed, with what the container said': [
    {
      status: {
        phase: 'Failed',
        containerStatuses: container({ terminated: { exitCode: 137, reason: 'OOMKilled' } }),
      },
    },
    'failed',
    'OOMKilled: the container ended with exit code 137',
  ],
  'ended well, which no proxy should': [
    {
      status: {
        phase: 'Succeeded',
        containerStatuses: container({ terminated: { exitCode: 0, reason: 'Completed' } }),
      },
    },
    'failed',
    'Completed: the container ended with exit code 0',
  ],
  'W3: running, not ready any more': [
    {
      status: {
        conditions: [ready('False', { reason: 'ContainersNotReady', lastTransitionTime: LATER })],
      },
    },
    'repairing',
    'ContainersNotReady',
  ],
  'W3: running on a node that is not heard of': [
    { status: { conditions: [ready('Unknown', { reason: 'NodeLost', lastTransitionTime: LATER })] } },
    'repairing',
    'NodeLost',
  ],
  'its container crashes again and again': [
    {
      status: {
        conditions: [ready('False', { lastTransitionTime: BEFORE })],
        containerStatuses: container({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } }, 3),
      },
    },
    'repairing',
    'CrashLoopBackOff: back-off 10s',
  ],
  'running, not ready yet': [
    {
      status: {
        conditions: [ready('False', { reason: 'ContainersNotReady', lastTransitionTime: BEFORE })],
        containerStatuses: container({ running: { startedAt: LATER } }),
      },
    },
    'creating',
    'ContainersNotReady',
  ],
  'running, without any word about readiness': [{ status: { conditions: [] } }, 'creating', undefined],
  'running and ready, without an address': [{ status: { podIP: '' } }, 'running', undefined],
  'pending, not looked at yet': [
    { status: { phase: 'Pending', conditions: [], containerStatuses: [] } },
    'creating',
    undefined,
  ],
  'no node takes it': [
    {
      status: {
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes.' },
        ],
      },
    },
    'creating',
    'Unschedulable: 0/3 nodes.',
  ],
  'its image cannot be had': [
    {
      status: {
        phase: 'Pending',
        containerStatuses: container({ waiting: { reason: 'ImagePullBackOff', message: 'no such image' } }),
      },
    },
    'creating',
    'ImagePullBackOff: no such image',
  ],
  'its container is being made': [
    {
      status: {
        phase: 'Pending',
        containerStatuses: container({ waiting: { reason: 'ContainerCreating' } }),
      },
    },
    'creating',
    undefined,
  ],
  'its node does not answer': [{ status: { phase: 'Unknown', reason: 'NodeLost' } }, 'unknown', 'NodeLost'],
  'a phase that nobody knows': [{ status: { phase: 'Resting' } }, 'unknown', undefined],
};

describe('the state of a Pod', () => {
  test.each(Object.entries(ROWS))('%s', (_, [parts, state, detail]) => {
    const machine = toMachine(aPod(parts));
    expect([machine.state, machine.detail]).toEqual([state, detail]);
  });

  test.each(Object.entries(ROWS))('row 61: no address to hand out: %s', (_, [parts]) => {
    expect(toMachine(aPod(parts)).address).toBeUndefined();
  });
});

describe('the owner of a Pod', () => {
  test('is the Proxy of its owner reference', () => {
    expect(ownerOf(aPod())).toEqual({ namespace: 'crawlers', name: 'internal-1', uid: 'owner-uid' });
  });

  test.each([
    ['nobody', []],
    ['a ReplicaSet', [{ ...OWNER, apiVersion: 'apps/v1', kind: 'ReplicaSet' }]],
    ['a Proxy of another API', [{ ...OWNER, apiVersion: 'other.example.com/v1' }]],
  ])('is no Proxy of ours where it is %s', (_, ownerReferences) => {
    expect(ownerOf(aPod({ metadata: { ownerReferences } }))).toBeUndefined();
  });
});
