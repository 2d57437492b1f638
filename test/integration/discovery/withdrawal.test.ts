import { setImmediate as nextTurn } from 'node:timers/promises';

import { beforeEach, expect, it } from 'vitest';

import type { HttpHandler } from '#shared/app/http.ts';
import type { LeaseDocument } from '#shared/domain/lease.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';

import { acquire, call, eventually, openFleet, proxyRecord, publication, type Fleet } from './fixture.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = openFleet();
  return () => fleet.close();
});

/** Microseconds. */
type Moment = number;
const momentOf = ({ updateTime }: { updateTime: { seconds: number; nanoseconds: number } }): Moment =>
  updateTime.seconds * 1e6 + updateTime.nanoseconds / 1e3;

interface Grant {
  readonly leaseId: string;
  readonly endpointId: string;
  readonly host: string;
  readonly committed: Moment;
}

/** Notes which lease each commit added, under the server's time of that commit. */
const noting =
  (grants: Grant[]) =>
  (store: LeaseStore): LeaseStore => {
    const known = new Set<string>();
    return {
      ...store,
      commit: async (uid, before, document: LeaseDocument, entries) => {
        const result = await store.commit(uid, before, document, entries);
        for (const { id, endpoint } of Object.values(document.leases)) {
          if (known.has(id)) continue;
          known.add(id);
          grants.push({
            leaseId: id,
            endpointId: endpoint.id,
            host: endpoint.host,
            committed: momentOf(result.version),
          });
        }
        return result;
      },
    };
  };

const CLIENTS = 32;
const ENDPOINTS = 8;

it('a lease is never granted on an endpoint whose withdrawal was committed before (B1)', async () => {
  const record = proxyRecord({ maxLeases: 1_000 });
  let version = await fleet.records.create(record);
  /** For each endpoint, the server times from which on it was published and withdrawn. */
  const published = new Map<string, { from: Moment; until: Moment }>();
  const open = (id: string) =>
    published.set(id, { from: momentOf(version), until: Number.POSITIVE_INFINITY });
  let current = record.serving;
  if (current) open(current.endpoint.id);

  const grants: Grant[] = [];
  const instances = [fleet.instance({ wrap: noting(grants) }), fleet.instance({ wrap: noting(grants) })];
  const seen = { granted: 0, refused: 0 };
  const over = new AbortController();

  /** Until another answer of this kind was given, so that every gate is met by callers, open and closed. */
  const another = async (kind: 'granted' | 'refused'): Promise<void> => {
    const before = seen[kind];
    await eventually(async () => {
      await nextTurn();
      return seen[kind] > before ? true : undefined;
    }, 30_000);
  };
  const toggle = async (): Promise<void> => {
    for (let round = 1; round < ENDPOINTS; round += 1) {
      await another('granted');
      const { serving: _serving, ...withdrawn } = record;
      version = await fleet.records.write(withdrawn, version);
      const entry = current && published.get(current.endpoint.id);
      if (entry) entry.until = momentOf(version);
      await another('refused');
      current = publication(`203.0.113.${round}`);
      version = await fleet.records.write({ ...record, serving: current }, version);
      open(current.endpoint.id);
    }
    await another('granted');
  };
  const hammer = async (discovery: HttpHandler, holder: string): Promise<void> => {
    while (!over.signal.aborted) {
      const { status, body } = await acquire(discovery, { holder });
      expect(status === 201 ? body['host'] : body['code']).toMatch(/^203\.|^NoneAvailable$/);
      seen[status === 201 ? 'granted' : 'refused'] += 1;
      if (status === 201) await call(discovery, 'DELETE', `/v1/leases/${String(body['leaseId'])}`);
    }
  };
  const work = [
    toggle(),
    ...instances.flatMap((instance, index) =>
      Array.from({ length: CLIENTS / 2 }, (_, n) => hammer(instance, `crawler-${index}-${n}`)),
    ),
  ];
  // Whoever ends first ends all: the toggling when it is through, or a client that met a wrong answer.
  await Promise.race(work).finally(() => over.abort());
  await Promise.all(work);

  expect(published.size).toBe(ENDPOINTS);
  const wrong = grants.filter(({ endpointId, committed }) => {
    const span = published.get(endpointId);
    return !span || committed < span.from || committed > span.until;
  });
  console.log(`${seen.granted} grants and ${seen.refused} refusals over ${published.size} endpoints`);
  expect(wrong).toEqual([]);
}, 120_000);
