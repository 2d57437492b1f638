/** Many grants under every trouble that instances, replies, clocks and the fleet can make, with a ledger at the clients. */

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';

import { makeLedger, type Ledger } from './ledger.ts';
import { lostSlots, mover, offerOf, openProxies } from './soak-fleet.ts';
import { makeCalls, type Call } from './soak-instances.ts';
import { TTL_SECONDS, type SoakOptions } from './soak-options.ts';
import { INDEXES } from './world.ts';

export interface SoakResult {
  readonly grants: number;
  readonly overAllocations: number;
  readonly onWithdrawn: number;
  /** Slots that nobody could lease at the end, when everything had expired; or that were leased beyond the last one. */
  readonly lostSlots: number;
  readonly kills: number;
  readonly lostReplies: number;
  readonly moves: number;
}

const lease = z.object({
  leaseId: z.string(),
  host: z.string(),
  proxy: z.object({ uid: z.string() }),
  grantedAt: z.iso.datetime().transform((text) => Date.parse(text)),
  expiresAt: z.iso.datetime().transform((text) => Date.parse(text)),
});

/** Of the requests, which take any proxy, and so meet the commits of other instances. */
const ANY = 0.02;

/** Callers of one instance mostly want one part of the fleet, as crawlers with a pool of their own do. */
const selectorOf = ({ random, instances }: SoakOptions, number: number): string => {
  if (random() < ANY) return '';
  const own = Array.from({ length: INDEXES }, (_, index) => index).filter(
    (index) => index % instances === number % instances,
  );
  return `index in (${own.join(',')})`;
};

/** After a refusal: slots come back within a batch of releases, and asking again at once would only be in their way. */
const REFUSED_MS = 20;

const worker = async (
  options: SoakOptions,
  number: number,
  call: Call,
  ledger: Ledger,
  isDone: () => boolean,
): Promise<void> => {
  while (!isDone()) {
    const start = ledger.moment();
    const labelSelector = selectorOf(options, number);
    const wanted = { holder: 'soak', ttlSeconds: TTL_SECONDS, labelSelector };
    const reply = await call(number, 'POST', '/v1/leases', wanted);
    const granted = reply?.status === 201 ? lease.parse(reply.body) : undefined;
    if (!granted) {
      await pause(REFUSED_MS);
      continue;
    }
    ledger.granted({ ...granted, uid: granted.proxy.uid }, start);
    const dice = options.random();
    // Some holders crash: only expiry gives their slots back.
    if (dice < 0.02) continue;
    const path = `/v1/leases/${granted.leaseId}`;
    if (dice < 0.1) {
      const renewed = await call(number, 'POST', `${path}/renew`, {});
      const after = z.object({ expiresAt: z.iso.datetime() }).safeParse(renewed?.body);
      if (renewed?.status === 200 && after.success) {
        ledger.renewed(granted.leaseId, Date.parse(after.data.expiresAt));
      }
    }
    ledger.released(granted.leaseId);
    await call(number, 'DELETE', path);
  }
};

export const soak = async (options: SoakOptions): Promise<SoakResult> => {
  const moved = await openProxies(options);
  await options.fleet.showViews();
  const ledger = makeLedger(moved.map(({ record }) => [record.ref.uid, offerOf(record)]));
  const tally = { kills: 0, lostReplies: 0 };
  const call = makeCalls(options, tally);
  const until = performance.now() + (options.maxMs ?? Number.POSITIVE_INFINITY);
  let told = 0;
  const isDone = (): boolean => {
    const { grants } = ledger.findings();
    if (grants - told >= 10_000) {
      told = grants;
      options.say?.(`${grants} grants, ${tally.kills} kills, ${tally.lostReplies} lost replies`);
    }
    return grants >= options.grants || performance.now() > until;
  };
  const workers = Array.from({ length: options.workers }, (_, number) =>
    worker(options, number, call, ledger, isDone),
  );
  const [moves] = await Promise.all([mover(options, moved, ledger, isDone), ...workers]);
  return { ...ledger.findings(), ...tally, moves, lostSlots: await lostSlots(options) };
};
