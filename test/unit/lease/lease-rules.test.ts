import { describe, expect, it } from 'vitest';

import { applyOperation, ENDED_KEPT, expire, uidOfLease } from '#shared/domain/lease-rules.ts';
import { leasesOn, standing } from '#shared/domain/lease-standing.ts';

import {
  acquireOf,
  endpoint,
  gate,
  lease,
  leaseDocument,
  leaseId,
  leases,
  releaseOf,
  renewOf,
  reportOf,
  UID,
} from './builders.ts';

describe('acquire', () => {
  it('grants on the endpoint of the gate, with server milliseconds as the first fence', () => {
    const { document, outcome } = applyOperation(leaseDocument(), acquireOf(1), 1_000);
    expect(outcome).toMatchObject({
      kind: 'granted',
      state: 'active',
      lease: {
        endpoint: { id: 'e1', host: '203.0.113.7' },
        fence: 1_000,
        grantedAt: 1_000,
        expiresAt: 61_000,
      },
    });
    expect(document.fence).toBe(1_000);
  });

  it('raises the fence even when the clock stands still', () => {
    const first = applyOperation(leaseDocument({ fence: 5_000 }), acquireOf(1), 1_000);
    expect(first.document.fence).toBe(5_001);
    expect(applyOperation(first.document, acquireOf(2), 1_000).document.fence).toBe(5_002);
  });

  const refused = [
    ['a closed gate', gate({ open: false, closedReason: 'Cordoned' }), 'Cordoned'],
    ['an open gate with an empty host', gate({ endpoint: endpoint('e1', '') }), 'NoEndpoint'],
  ] as const;
  it.each(refused)('is refused by %s and changes nothing (B1, row 78)', (_what, closed, reason) => {
    const document = leaseDocument({ gate: closed });
    const judgement = applyOperation(document, acquireOf(1), 1_000);
    expect(judgement.outcome).toEqual({ kind: 'closed', reason });
    expect(judgement.document).toBe(document);
  });

  it('is refused by an open gate without an endpoint (B1)', () => {
    const { endpoint: _none, ...without } = gate();
    expect(applyOperation(leaseDocument({ gate: without }), acquireOf(1), 1).outcome.kind).toBe('closed');
  });

  it('is refused when full, changes no lease, and says and notes when a slot may be free', () => {
    const document = leaseDocument({ leases: leases(lease(1), lease(2, { expiresAt: 30_000 })) });
    const judgement = applyOperation(document, acquireOf(3), 1_000);
    expect(judgement.outcome).toEqual({ kind: 'full', freeAt: 31_000 });
    expect(judgement.document).toEqual({ ...document, freeAt: 31_000 });
    expect(applyOperation(judgement.document, acquireOf(3), 1_000).document).toBe(judgement.document);
  });

  it('reuses a slot one second after its lease expired, not before (row 74)', () => {
    const document = leaseDocument({ gate: gate({ maxLeases: 1 }), leases: leases(lease(1)) });
    expect(applyOperation(document, acquireOf(2), 60_999).outcome.kind).toBe('full');
    const granted = applyOperation(document, acquireOf(2), 61_000);
    expect(granted.outcome.kind).toBe('granted');
    expect(granted.document.ended).toEqual([{ id: leaseId(1), reason: 'Expired', at: 61_000 }]);
  });

  it('does not count leases on draining endpoints', () => {
    const draining = [{ endpointId: 'e0', until: 100_000 }];
    const old = { endpoint: { ...lease(0).endpoint, id: 'e0' } };
    const document = leaseDocument({
      gate: gate({ draining, maxLeases: 1 }),
      leases: leases(lease(1, old), lease(2, old)),
    });
    const { document: after, outcome } = applyOperation(document, acquireOf(3), 1_000);
    expect(outcome.kind).toBe('granted');
    expect(Object.keys(after.leases)).toHaveLength(3);
  });

  it('after a shrunk bound waits until enough leases have ended', () => {
    const document = leaseDocument({
      gate: gate({ maxLeases: 1 }),
      leases: leases(lease(1, { expiresAt: 10_000 }), lease(2, { expiresAt: 20_000 }), lease(3)),
    });
    expect(applyOperation(document, acquireOf(4), 1_000).outcome).toEqual({ kind: 'full', freeAt: 61_000 });
  });

  it('applied again to its own result is granted again, and takes no second slot (row 36)', () => {
    const first = applyOperation(leaseDocument(), acquireOf(1), 1_000);
    const again = applyOperation(first.document, acquireOf(1), 2_000);
    expect(again.document).toBe(first.document);
    expect(again.outcome).toEqual(first.outcome);
  });

  it('sets freeAt to the moment at which the last slot taken comes back', () => {
    const first = applyOperation(leaseDocument(), acquireOf(1, 60), 1_000).document;
    expect(first.freeAt).toBe(0);
    const full = applyOperation(first, acquireOf(2, 30), 1_000).document;
    expect(full.freeAt).toBe(32_000);
    expect(applyOperation(full, releaseOf(1), 2_000).document.freeAt).toBe(0);
  });
});

describe('renew', () => {
  const document = leaseDocument({ leases: leases(lease(1)) });

  it('runs from now with the old length, or a new one', () => {
    expect(applyOperation(document, renewOf(1), 30_000).outcome).toMatchObject({
      kind: 'renewed',
      lease: { expiresAt: 90_000, ttlSeconds: 60 },
    });
    expect(applyOperation(document, renewOf(1, 10), 30_000).outcome).toMatchObject({
      lease: { expiresAt: 40_000, ttlSeconds: 10 },
    });
  });

  it('is refused from the moment of expiry, although the slot is not reused yet (row 74)', () => {
    expect(applyOperation(document, renewOf(1), 59_999).outcome.kind).toBe('renewed');
    expect(applyOperation(document, renewOf(1), 60_000)).toEqual({
      document,
      outcome: { kind: 'ended', reason: 'Expired' },
    });
  });

  const closed = [
    ['Cordoned', 'cordoned'],
    ['Unhealthy', 'unhealthy'],
    ['NotYetHealthy', 'unhealthy'],
    ['Deleting', 'draining'],
  ] as const;
  it.each(closed)('goes on behind a gate closed as %s and says %s', (closedReason, state) => {
    const behind = { ...document, gate: gate({ open: false, closedReason }) };
    expect(applyOperation(behind, renewOf(1), 1_000).outcome).toMatchObject({ kind: 'renewed', state });
  });

  it('is capped at the end of a drain', () => {
    const draining = {
      ...document,
      gate: gate({ endpoint: endpoint('e2'), draining: [{ endpointId: 'e1', until: 50_000 }] }),
    };
    expect(applyOperation(draining, renewOf(1, 600), 10_000).outcome).toMatchObject({
      state: 'draining',
      lease: { expiresAt: 50_000 },
    });
    expect(applyOperation(draining, renewOf(1), 50_000).outcome).toEqual({
      kind: 'ended',
      reason: 'Drained',
    });
  });

  it('says EndpointGone when the endpoint is neither served nor draining (row 76)', () => {
    const replaced = { ...document, gate: gate({ endpoint: endpoint('e2') }) };
    expect(applyOperation(replaced, renewOf(1), 1_000).outcome).toEqual({
      kind: 'ended',
      reason: 'EndpointGone',
    });
  });

  it("does not know another caller's lease (row 75)", () => {
    const foreign = leaseDocument({ leases: leases(lease(1, { caller: 'a@example.com' })) });
    expect(applyOperation(foreign, renewOf(1), 1).outcome).toEqual({ kind: 'ended', reason: 'Unknown' });
    expect(applyOperation(foreign, releaseOf(1), 1).document).toBe(foreign);
    expect(applyOperation(foreign, reportOf(1), 1).outcome.kind).toBe('ended');
  });
});

describe('release and report', () => {
  it('frees the slot once, and a second release changes nothing (row 75)', () => {
    const first = applyOperation(leaseDocument({ leases: leases(lease(1), lease(2)) }), releaseOf(1), 1_000);
    expect(first.outcome).toEqual({ kind: 'released' });
    expect(Object.keys(first.document.leases)).toHaveLength(1);
    const again = applyOperation(first.document, releaseOf(1), 2_000);
    expect(again.document).toBe(first.document);
    expect(again.outcome).toEqual({ kind: 'ended', reason: 'Released' });
  });

  it('a report is kept with the lease and touches nothing else', () => {
    const document = leaseDocument({ leases: leases(lease(1)) });
    const { document: after } = applyOperation(document, reportOf(1), 5_000);
    expect(after.leases).toEqual(leases(lease(1, { report: { outcome: 'failed', at: 5_000 } })));
    expect(after.gate).toBe(document.gate);
  });
});

describe('expire', () => {
  it('keeps a bounded list of ends, newest first', () => {
    const many = Array.from({ length: ENDED_KEPT + 20 }, (_, n) => lease(n));
    const { ended, leases: live } = expire(leaseDocument({ leases: leases(...many) }), 61_000);
    expect(live).toEqual({});
    expect(ended).toHaveLength(ENDED_KEPT);
  });

  it('returns the very document when nothing is over', () => {
    const document = leaseDocument({ leases: leases(lease(1)) });
    expect(expire(document, 60_500)).toBe(document);
  });

  it('tells provision which leases still hold an endpoint', () => {
    const document = leaseDocument({ leases: leases(lease(1), lease(2, { expiresAt: 500 })) });
    expect(leasesOn(document, 'e1', 2_000)).toEqual([lease(1)]);
    expect(leasesOn(document, 'e2', 2_000)).toEqual([]);
  });
});

describe('ids', () => {
  it.each([
    [leaseId(255), UID],
    ['nonsense', undefined],
    [`${UID}.xyz`, undefined],
    [`a/b.${'0'.repeat(32)}`, undefined],
    [`..${'0'.repeat(32)}`, undefined],
  ])('%s names %s', (id, uid) => expect(uidOfLease(id)).toBe(uid));

  it('finds no lease under an inherited name', () => {
    const operation = { kind: 'renew', id: `${UID}.constructor`, caller: '', ttlSeconds: undefined } as const;
    expect(applyOperation(leaseDocument(), operation, 1).outcome).toEqual({
      kind: 'ended',
      reason: 'Unknown',
    });
  });

  it('a standing never outlives its drain', () => {
    const draining = gate({ endpoint: endpoint('e2'), draining: [{ endpointId: 'e1', until: 10 }] });
    expect(standing(leaseDocument({ gate: draining }), lease(1), 5)).toMatchObject({ expiresAt: 10 });
  });
});
