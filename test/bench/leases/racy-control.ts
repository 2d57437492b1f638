/** The control: what the ledger must find, or it finds nothing. */

import { randomUUID } from 'node:crypto';

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';

import { makeLedger } from './ledger.ts';
import type { Fleet } from './world.ts';

/** Whoever reads a document and then writes it blindly must be found out. Resolves with over-allocations. */
export const racyControl = async (fleet: Fleet, workers: number): Promise<number> => {
  const slot = fleet.db.collection('racy').doc(randomUUID());
  await slot.set({ held: [] });
  const held = z.array(z.string());
  const ledger = makeLedger([['racy', { host: 'racy', maxLeases: 2 }]]);
  const until = performance.now() + 2_000;
  const loop = async (): Promise<void> => {
    while (performance.now() < until) {
      const start = ledger.moment();
      const before = held.parse((await slot.get()).get('held'));
      if (before.length >= 2) continue;
      const leaseId = randomUUID();
      await slot.update({ held: [...before, leaseId] });
      ledger.granted({ uid: 'racy', host: 'racy', leaseId, grantedAt: 1, expiresAt: 2 }, start);
      await pause(2);
      ledger.released(leaseId);
      const after = held.parse((await slot.get()).get('held'));
      await slot.update({ held: after.filter((id) => id !== leaseId) });
    }
  };
  await Promise.all(Array.from({ length: workers }, loop));
  return ledger.findings().overAllocations;
};
