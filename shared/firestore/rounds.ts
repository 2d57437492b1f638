/** Rounds of the prober, `rounds/{shard}`: who runs one, and what the next one must know. */

import type { Firestore } from '@google-cloud/firestore';
import { z } from 'zod';

import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { ProxyRef } from '#shared/domain/proxy.ts';
import type { Streak } from '#shared/domain/verdict-rules.ts';
import { PROBE_OUTCOMES } from '#shared/domain/verdict.ts';

import { firestoreCall } from './client.ts';
import { claimDocument, isHeld, type Held } from './locks.ts';

/** What a round leaves behind. Written only when it differs from what is there. */
export interface RoundState {
  /** Proxies whose verdict has changed and whose nudge may not have been published. */
  readonly flips: readonly ProxyRef[];
  /** Names this very list of flips; a random string. */
  readonly flipsId: string;
  /** Rounds in a row that were inconclusive because too many endpoints turned bad at once. */
  readonly massFailures: number;
  /** Endpoints that were still in doubt when time ran out. */
  readonly doubts: readonly Streak[];
}

export interface RoundClaim {
  /** Server milliseconds of the claim. */
  readonly now: number;
  /** Server milliseconds of the claim before; absent in the first round. */
  readonly previousAt?: number;
  readonly state: RoundState;
  /** Throws `Conflict` when the claim has passed to another, and `Transient`. */
  save(state: RoundState): Promise<void>;
}

const EMPTY: RoundState = { flips: [], flipsId: '', massFailures: 0, doubts: [] };

const ref: z.ZodType<ProxyRef> = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });
const streak: z.ZodType<Streak> = z.object({
  endpointId: z.string(),
  successes: z.number(),
  failures: z.number(),
  newest: z
    .object({
      endpointId: z.string(),
      at: z.number(),
      outcome: z.enum(PROBE_OUTCOMES),
      exitAddress: z.string().exactOptional(),
    })
    .exactOptional(),
});

/** Each field by itself: one that cannot be read is as good as empty, and must not stop every round from then on. */
const stateSchema = z.object({
  flips: z.array(ref).catch([]),
  flipsId: z.string().catch(''),
  massFailures: z.number().catch(0),
  doubts: z.array(streak).catch([]),
});

const startSchema = z.object({ claimedAt: z.number() });

export type RoundStore = ReturnType<typeof roundStore>;

export const roundStore = (db: Firestore) => ({
  /**
   * Claims a shard for one round. `published` is the `flipsId` of a list whose nudges are known to be out: it is dropped in
   * the same write. Throws `Transient` when Firestore is away.
   */
  async claim(shard: string, holder: string, ttlMs: number, published: string): Promise<RoundClaim | Held> {
    const document = db.collection('rounds').doc(shard);
    const read = (previous: unknown): RoundState => {
      const state = stateSchema.safeParse(previous).data ?? EMPTY;
      return published !== '' && state.flipsId === published ? { ...state, flips: [], flipsId: '' } : state;
    };
    const claim = await claimDocument(document, holder, ttlMs, (previous, now) => ({
      ...read(previous),
      claimedAt: now,
    }));
    if (isHeld(claim)) return claim;

    let lastUpdateTime = claim.updateTime;
    const write = async (state: RoundState): Promise<void> => {
      const result = await firestoreCall(db, `write round ${shard}`, () =>
        document.update({ ...state }, { lastUpdateTime }),
      );
      lastUpdateTime = result.writeTime;
    };
    const previousAt = startSchema.safeParse(claim.previous).data?.claimedAt;
    return {
      now: claim.now,
      ...(previousAt === undefined ? {} : { previousAt }),
      state: read(claim.previous),
      async save(state) {
        try {
          return await write(state);
        } catch (error) {
          if (!hasCode(error, 'Conflict')) throw error;
        }
        // The conflict may be with our own write, which the client retried.
        const seen = await firestoreCall(db, `read round ${shard}`, () => document.get());
        const ours = seen.get('holder') === holder && seen.get('until') === claim.until;
        if (!ours || !seen.updateTime)
          throw new SystemError('Conflict', `round ${shard} has passed to another holder`);
        lastUpdateTime = seen.updateTime;
        await write(state);
      },
    };
  },
});
