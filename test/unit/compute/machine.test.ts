import { describe, expect, test } from 'vitest';

import { readInstance, toMachine } from '#shared/compute/machine.ts';

const instance = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: '5388173188860000007',
  name: 'prod-x-1',
  zone: 'https://www.googleapis.com/compute/v1/projects/project-1/zones/europe-west1-b',
  status: 'RUNNING',
  creationTimestamp: '2026-11-30T08:00:00.000-08:00',
  labels: { 'egress-installation': 'prod', 'egress-proxy-uid': 'u', 'egress-proxy-hash': 'h' },
  networkInterfaces: [{ networkIP: '10.0.0.2', accessConfigs: [{ natIP: '203.0.113.7' }] }],
  ...changes,
});
const machine = (changes: Record<string, unknown> = {}): ReturnType<typeof toMachine> =>
  toMachine(readInstance(instance(changes)), 'project-1');

describe('an instance as a machine', () => {
  test('has everything that the instance says', () => {
    expect(machine()).toEqual({
      name: 'prod-x-1',
      zone: 'europe-west1-b',
      instanceId: '5388173188860000007',
      providerID: 'gce://project-1/europe-west1-b/prod-x-1',
      state: 'running',
      address: '203.0.113.7',
      installation: 'prod',
      uid: 'u',
      hash: 'h',
      createdAt: Date.UTC(2026, 10, 30, 16),
    });
  });

  test.each([
    ['PROVISIONING', 'creating'],
    ['STAGING', 'creating'],
    ['PENDING', 'creating'],
    ['RUNNING', 'running'],
    ['STOPPING', 'stopping'],
    ['PENDING_STOP', 'stopping'],
    ['DEPROVISIONING', 'stopping'],
    ['TERMINATED', 'stopped'],
    ['STOPPED', 'stopped'],
    ['SUSPENDING', 'suspended'],
    ['SUSPENDED', 'suspended'],
    ['REPAIRING', 'repairing'],
    ['SOMETHING_NEW', 'unknown'],
    ['', 'unknown'],
  ])('%s is %s', (status, state) => {
    expect(machine({ status }).state).toBe(state);
  });

  test('B1: one that waits for its external address has none, although it has an internal one', () => {
    const networkInterfaces = [{ networkIP: '10.0.0.2', accessConfigs: [{ natIP: '' }] }];
    expect(machine({ networkInterfaces })).not.toHaveProperty('address');
  });

  test('without an external address asked for, the internal one is the address', () => {
    expect(machine({ networkInterfaces: [{ networkIP: '10.0.0.2', accessConfigs: [] }] }).address).toBe(
      '10.0.0.2',
    );
  });

  test.each(['STOPPING', 'TERMINATED', 'SUSPENDED', 'SOMETHING_NEW'])('B1: %s has no address', (status) => {
    expect(machine({ status })).not.toHaveProperty('address');
  });

  test('row 45: says why it does not run, in the words of the provider', () => {
    expect(machine({ status: 'TERMINATED', statusMessage: 'Instance was preempted.' }).detail).toBe(
      'Instance was preempted.',
    );
    expect(machine({ status: 'TERMINATED', statusMessage: '' }).detail).toBe('TERMINATED');
    expect(machine()).not.toHaveProperty('detail');
  });

  test('missing labels and an unreadable time are absent, not empty', () => {
    const bare = machine({ labels: null, creationTimestamp: 'soon' });
    for (const key of ['installation', 'uid', 'hash', 'createdAt']) expect(bare).not.toHaveProperty(key);
  });

  test('a reply that is no instance is an outage, not a machine', () => {
    expect(() => readInstance({ hello: 1 })).toThrow(expect.objectContaining({ code: 'Transient' }));
  });
});
