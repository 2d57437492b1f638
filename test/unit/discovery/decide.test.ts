import { describe, expect, it } from 'vitest';

import type { ClosedReason } from '#shared/domain/gate.ts';

import {
  candidatesInOrder,
  matchesGate,
  preference,
  refusalCounts,
  retryAfterSeconds,
} from '../../../functions/discovery/decide.ts';
import { endpoint, gate } from '../lease/builders.ts';

const candidate = (name: string, load: number, over: Parameters<typeof gate>[0] = {}, freeAt = 0) => ({
  name,
  gate: gate({ maxLeases: 4, ...over }),
  freeAt,
  load,
});
const { endpoint: _endpoint, ...withoutEndpoint } = gate();

describe('candidatesInOrder', () => {
  it('leaves out what is closed, has no address, is full, or has no slot yet (B1)', () => {
    const order = candidatesInOrder(
      [
        candidate('closed', 0, { open: false, closedReason: 'Unhealthy' }),
        { ...candidate('nowhere', 0), gate: withoutEndpoint },
        candidate('empty', 0, { endpoint: endpoint('e', '') }),
        candidate('full', 4),
        candidate('later', 0, {}, 5_000),
        candidate('free', 3),
      ],
      4_999,
    );
    expect(order.map(({ name }) => name)).toEqual(['free']);
  });

  it('prefers the least loaded for their size', () => {
    const order = candidatesInOrder(
      [candidate('half', 2), candidate('idle', 0), candidate('big', 10, { maxLeases: 40 })],
      0,
    );
    expect(order.map(({ name }) => name)).toEqual(['idle', 'big', 'half']);
  });

  it('comes to a proxy that another instance writes too after those that it has for itself', () => {
    const order = candidatesInOrder(
      [{ ...candidate('shared', 0), isContended: true }, candidate('own', 0), candidate('half', 2)],
      0,
    );
    expect(order.map(({ name }) => name)).toEqual(['own', 'shared', 'half']);
  });

  it('looks at no more of 10,000 proxies than it takes to find some that are idle', () => {
    let looked = 0;
    const many = (function* () {
      for (looked = 0; looked < 10_000; looked += 1) yield candidate(String(looked), 0);
    })();
    expect(candidatesInOrder(many, 0)[0]?.name).toBe('0');
    expect(looked).toBeLessThan(100);
  });
});

describe('preference', () => {
  it('gives each instance a slice of its own: 8 proxies each of 4 instances in 1000 hardly overlap', () => {
    const uids = Array.from({ length: 1_000 }, (_, index) => `uid-${index}`);
    const chosen = ['a', 'b', 'c', 'd'].flatMap((instance) =>
      uids.toSorted((x, y) => preference(instance, x) - preference(instance, y)).slice(0, 8),
    );
    expect(new Set(chosen).size).toBeGreaterThan(28);
  });
});

describe('matchesGate', () => {
  const wanted = { selector: [] };
  it.each([
    [{}, true],
    [{ namespace: 'crawlers' }, true],
    [{ namespace: 'x' }, false],
    [{ zone: 'z-a' }, true],
    [{ zone: 'z-b' }, false],
    [{ provider: 'gcp' as const }, true],
    [{ provider: 'External' as const }, false],
    [{ proxy: { namespace: 'crawlers', name: 'a' } }, true],
    [{ proxy: { namespace: 'crawlers', name: 'b' } }, false],
  ])('%j: %s', (more, expected) => {
    expect(matchesGate(gate(), { ...wanted, ...more })).toBe(expected);
  });
});

const closed = (closedReason: ClosedReason) => ({ gate: gate({ open: false, closedReason }) });

describe('a refusal', () => {
  it('counts each proxy under one cause', () => {
    const all = [
      { gate: gate() },
      closed('Unhealthy'),
      closed('Cordoned'),
      closed('Deleting'),
      closed('NotYetHealthy'),
      { gate: { ...withoutEndpoint, open: false, closedReason: 'NoEndpoint' as const } },
    ];
    const counts = { full: 1, unhealthy: 1, cordoned: 1, draining: 1, notReady: 2, excluded: 0 };
    expect(refusalCounts(all, new Set())).toEqual(counts);
    const uid = gate().proxy.ref.uid;
    expect(refusalCounts(all, new Set([uid]))).toMatchObject({ full: 0, excluded: 6 });
  });

  it.each([
    [2_500, 2],
    [0, 1],
    [900_000, 10],
  ])('with the next slot at %i ms asks to wait %i s', (freeAt, seconds) => {
    expect(retryAfterSeconds([{ gate: gate(), freeAt }], 1_000)).toBe(seconds);
  });

  it('with nothing leasable asks for the longest wait', () => {
    expect(retryAfterSeconds([], 0)).toBe(10);
  });
});
