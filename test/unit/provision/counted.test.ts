import { describe, expect, it } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import { countCalls } from '#shared/providers/counted.ts';

import { aMachine } from '../gc/builders.ts';

import { fakeProvider } from './fake-cloud.ts';
import { REF, newWorld } from './world.ts';

/** Calls as `provider call result`, of a provider that is changed so. */
const counting = (change: Partial<ReturnType<typeof fakeProvider>> = {}) => {
  const counts: string[] = [];
  const given = { ...fakeProvider(newWorld()), ...change };
  const { gcp } = countCalls({ gcp: given }, ({ provider, call, result }) =>
    counts.push(`${provider} ${call} ${result}`),
  );
  if (!gcp) throw new Error('there should be one');
  return { gcp, counts };
};

describe('calls of a provider', () => {
  it('are counted when they have ended, with what became of them', async () => {
    const failure = new SystemError('QuotaExceeded', 'no');
    const { gcp, counts } = counting({
      create: () => Promise.reject(failure),
      start: () => Promise.reject(new TypeError('a fault of ours')),
      wait: () =>
        Promise.resolve({ kind: 'failed', behaviour: 'CapacityUnavailable', code: 'X', message: 'y' }),
    });
    expect(await gcp.get('m', 'z')).toBeUndefined();
    await expect(gcp.create({ ref: REF, name: 'm', hash: 'h', port: 1 }, 'z', 'id')).rejects.toBe(failure);
    await expect(gcp.start(aMachine(1))).rejects.toThrow('a fault of ours');
    await gcp.wait({ zone: 'z', name: 'op' }, new AbortController().signal);
    expect(counts).toEqual([
      'gcp get Ok',
      'gcp create QuotaExceeded',
      'gcp start Error',
      'gcp wait CapacityUnavailable',
    ]);
  });

  it('of a provider that is not configured are none', () => {
    expect(countCalls({}, () => undefined)).toEqual({});
  });
});
