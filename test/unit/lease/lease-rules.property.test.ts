import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { expect, it } from 'vitest';

import type { LeaseDocument } from '#shared/domain/lease.ts';
import { applyOperation, type LeaseOutcome } from '#shared/domain/lease-rules.ts';
import { REUSE_AFTER_MS } from '#shared/domain/lease-standing.ts';

import {
  acquireOf,
  endpoint,
  gate,
  leaseDocument,
  leaseId,
  releaseOf,
  renewOf,
  reportOf,
} from './builders.ts';

type Move =
  | { readonly kind: 'acquire' | 'renew'; readonly n: number; readonly ttl: number }
  | { readonly kind: 'release' | 'report' | 'repeat'; readonly n: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'resize'; readonly maxLeases: number }
  | { readonly kind: 'replace'; readonly drainMs: number }
  | { readonly kind: 'withdraw' | 'reopen' };

const n = fc.integer({ min: 0, max: 30 });
const ttl = fc.integer({ min: 1, max: 20 });
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('acquire' as const), n, ttl }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('renew' as const), n, ttl }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('release', 'report', 'repeat'), n }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 8_000 }) }),
  },
  fc.record({ kind: fc.constant('resize' as const), maxLeases: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('replace' as const), drainMs: fc.integer({ min: 0, max: 9_000 }) }),
  fc.record({ kind: fc.constantFrom('withdraw', 'reopen') }),
);

/** Who holds what by the simplest account of it: a list of grants with the time at which each is over. */
interface Held {
  readonly id: string;
  readonly endpointId: string;
  until: number;
}

/** The document under test beside the model. */
class World {
  now = 1_000;
  document: LeaseDocument = leaseDocument();
  held: Held[] = [];
  readonly fences: number[] = [];
  readonly used = new Set<number>();
  endpoints = 1;
  readonly violations: string[] = [];

  private must(holds: boolean, what: string): void {
    if (!holds) this.violations.push(`${what} at ${this.now}`);
  }

  private live(slack = 0): Held[] {
    const { gate: current } = this.document;
    return this.held.filter(({ endpointId, until }) => {
      const drain = current.draining.find((entry) => entry.endpointId === endpointId);
      const end = drain ? Math.min(until, drain.until) : until;
      return (drain ?? current.endpoint?.id === endpointId) && this.now < end + (drain ? 0 : slack);
    });
  }

  private onServing(slack = 0): number {
    return this.live(slack).filter(({ endpointId }) => endpointId === this.document.gate.endpoint?.id).length;
  }

  private acquire(number: number, seconds: number): void {
    if (this.used.has(number)) return;
    const before = this.document;
    const taken = this.onServing(REUSE_AFTER_MS);
    const mayBeGranted = before.gate.open && taken < before.gate.maxLeases;
    const { document, outcome } = applyOperation(before, acquireOf(number, seconds), this.now);
    const refusal = before.gate.open ? 'full' : 'closed';
    this.must(outcome.kind === (mayBeGranted ? 'granted' : refusal), `acquire says ${outcome.kind}`);
    if (outcome.kind !== 'granted') {
      const { freeAt } = document;
      const isNoted = freeAt === before.freeAt || (before.freeAt <= this.now && this.now < freeAt);
      this.must(isNoted, 'a refused acquire notes a wrong moment');
      assert.deepEqual({ ...document, freeAt: 0 }, { ...before, freeAt: 0 });
      this.document = document;
      return;
    }
    this.used.add(number);
    this.document = document;
    this.fences.push(outcome.lease.fence);
    this.held.push({
      id: outcome.lease.id,
      endpointId: outcome.lease.endpoint.id,
      until: outcome.lease.expiresAt,
    });
    this.must(this.onServing() <= document.gate.maxLeases, 'one lease too many');
    this.must(outcome.lease.endpoint.id === document.gate.endpoint?.id, 'a lease on another endpoint');
  }

  private ofLive(number: number): Held | undefined {
    return this.live().find(({ id }) => id === leaseId(number));
  }

  private renew(number: number, seconds: number): void {
    const expected = this.ofLive(number);
    const { document, outcome } = applyOperation(this.document, renewOf(number, seconds), this.now);
    this.must(outcome.kind === (expected ? 'renewed' : 'ended'), `renew says ${outcome.kind}`);
    this.document = document;
    if (expected && outcome.kind === 'renewed') expected.until = outcome.lease.expiresAt;
  }

  private release(number: number): void {
    const { document } = applyOperation(this.document, releaseOf(number), this.now);
    const again: { document: LeaseDocument; outcome: LeaseOutcome } = applyOperation(
      document,
      releaseOf(number),
      this.now,
    );
    this.must(again.document === document, 'a second release changes the document');
    this.document = document;
    this.held = this.held.filter(({ id }) => id !== leaseId(number));
  }

  /** A grant whose reply was lost is applied again. */
  private repeat(number: number): void {
    if (!this.used.has(number)) return;
    const { document, outcome } = applyOperation(this.document, acquireOf(number), this.now);
    this.must(document === this.document, 'a repeated acquire changes the document');
    const isLive = this.ofLive(number) !== undefined;
    this.must((outcome.kind === 'granted') === isLive, `repeated acquire says ${outcome.kind}`);
  }

  private setGate(over: Partial<LeaseDocument['gate']>): void {
    this.document = { ...this.document, gate: { ...this.document.gate, ...over }, freeAt: 0 };
  }

  private replace(drainMs: number): void {
    const old = this.document.gate.endpoint?.id ?? '';
    this.endpoints += 1;
    const draining = [...this.document.gate.draining, { endpointId: old, until: this.now + drainMs }];
    this.setGate({ endpoint: endpoint(`e${this.endpoints}`), draining: draining.slice(-2), open: true });
  }

  play(step: Move): void {
    if (step.kind === 'wait') this.now += step.ms;
    else if (step.kind === 'acquire') this.acquire(step.n, step.ttl);
    else if (step.kind === 'renew') this.renew(step.n, step.ttl);
    else if (step.kind === 'release') this.release(step.n);
    else if (step.kind === 'repeat') this.repeat(step.n);
    else if (step.kind === 'report') {
      this.document = applyOperation(this.document, reportOf(step.n), this.now).document;
    } else if (step.kind === 'resize') this.setGate({ maxLeases: step.maxLeases });
    else if (step.kind === 'replace') this.replace(step.drainMs);
    else this.setGate({ open: step.kind === 'reopen' });
    this.check();
  }

  private check(): void {
    // What the model holds, the document holds; a slot that is free now is never hidden from a query for free ones.
    for (const { id } of this.live()) {
      this.must(
        Object.values(this.document.leases).some((lease) => lease.id === id),
        `${id} is lost`,
      );
    }
    if (this.onServing(REUSE_AFTER_MS) < this.document.gate.maxLeases) {
      this.must(this.document.freeAt <= this.now, 'a free slot is hidden');
    }
  }
}

it('no order of operations, expiries and gate changes grants one too many, reuses a fence or loses a slot (row 28, B1)', () => {
  const seed = Number(process.env['FC_SEED'] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed}`);
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
      const world = new World();
      world.document = leaseDocument({ gate: gate({ maxLeases: 2 }) });
      for (const step of moves) world.play(step);
      expect(world.violations).toEqual([]);
      expect(world.fences).toEqual([...new Set(world.fences)].toSorted((a, b) => a - b));
    }),
    { seed, numRuns: 500 },
  );
});
