import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { seeded } from '#test/bench/leases/random.ts';

import { faultsOf, operations, randomRequest } from './contract.ts';
import { makeParts } from './parts.ts';

const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 1_000);
const lease = z.object({ leaseId: z.string() });

describe('random requests', () => {
  it(`get answers that the OpenAPI document describes, none of them 5xx but a documented 503, and lose no slot (${REQUESTS} requests)`, async () => {
    const seed = Date.now() % 2 ** 31;
    console.log(`seed ${seed}`);
    const random = seeded(seed);
    const { handler, fake, lines } = makeParts();
    const leaseIds: string[] = [];
    const statuses = new Map<number, number>();
    for (let round = 0; round < REQUESTS; round += 1) {
      const operation = operations[Math.floor(random() * operations.length)];
      if (!operation) throw new Error('there are operations');
      const request = randomRequest({ random, leaseIds }, operation);
      const reply = await handler(request);
      const about = `${request.method} ${request.path}?${String(request.query)} ${new TextDecoder().decode(request.body)}`;
      expect(faultsOf(operation, reply), `${about} -> ${JSON.stringify(reply)}`).toEqual([]);
      expect(reply.status < 500 || reply.status === 503).toBe(true);
      expect(JSON.stringify(reply.body ?? '')).not.toMatch(/<html|\n\s+at |node_modules/i);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      const granted = lease.safeParse(reply.body);
      if (reply.status === 201 && granted.success) leaseIds.push(granted.data.leaseId);
    }
    for (const status of [200, 201, 202, 204, 400]) expect([...statuses.keys()]).toContain(status);
    expect(lines.join('')).not.toMatch(/"severity":"ERROR"/);

    for (const id of leaseIds) {
      await handler({
        method: 'DELETE',
        path: `/v1/leases/${id}`,
        query: new URLSearchParams(),
        headers: {},
        body: new Uint8Array(),
      });
    }
    expect(Object.keys(fake.stored()?.document.leases ?? {})).toEqual([]);
  }, 300_000);
});
