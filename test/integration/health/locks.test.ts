import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

import { closeFirestore, openFirestore } from '#shared/firestore/client.ts';
import { acquireLock } from '#shared/firestore/locks.ts';

let db: ReturnType<typeof openFirestore>;
beforeAll(() => {
  process.env['FIRESTORE_EMULATOR_HOST'] = inject('emulators').firestore;
  db = openFirestore({ projectId: `t${randomBytes(6).toString('hex')}` });
});
afterAll(() => closeFirestore(db));

describe('locks (K5, row 24)', () => {
  it('of many that want it at once, one gets it', async () => {
    const locks = await Promise.all(
      Array.from({ length: 8 }, (_, index) => acquireLock(db, 'many', `run-${index}`, 60_000)),
    );
    expect(locks.filter(Boolean)).toHaveLength(1);
  });

  it('are free again when released', async () => {
    const first = await acquireLock(db, 'released', 'a', 60_000);
    expect(await acquireLock(db, 'released', 'b', 60_000)).toBeUndefined();
    await first?.release();
    expect(await acquireLock(db, 'released', 'b', 60_000)).toBeDefined();
  });

  it('expire with their holder, who then frees nothing that is no longer its own', async () => {
    const lost = await acquireLock(db, 'expired', 'a', 50);
    await expect.poll(() => acquireLock(db, 'expired', 'b', 60_000), { timeout: 5000 }).toBeDefined();
    await lost?.release();
    expect(await acquireLock(db, 'expired', 'c', 60_000)).toBeUndefined();
  });
});
