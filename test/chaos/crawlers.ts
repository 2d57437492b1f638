/** What goes on beside the trouble: crawlers that list and lease, and the minute jobs, more often than by the minute. */

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';
import type { World } from '#test/e2e/world.ts';
import { acquire, release } from '#test/stack/crawl.ts';

import type { Witness } from './witness.ts';

const listSchema = z.object({
  items: z.array(z.looseObject({ proxy: z.object({ uid: z.string() }), host: z.string(), port: z.number() })),
});

/** An entry of a list, and the time between question and answer. */
interface Sighting {
  readonly uid: string;
  readonly address: string;
  readonly from: number;
  readonly to: number;
}

export interface Background {
  readonly leases: () => number;
  readonly lists: () => number;
  /** Leases on machines that were dead already, before anybody could know. */
  readonly onDead: () => number;
  /** Entries of lists that no open gate ever allowed at that time. */
  listed(): readonly string[];
  stop(): Promise<void>;
}

/** What happened behind everybody's back is noticed in the next round of health. Milliseconds. */
const NOTICED_MS = 75_000;

/** The listener may be told of a version a moment later than the list was read. */
const isAllowed = (witness: Witness, { uid, address, from, to }: Sighting): boolean =>
  witness.losses(uid).some((at) => at <= to && to - at <= NOTICED_MS) ||
  witness.gates(uid).some((version, index, all) => {
    const end = all[index + 1]?.at ?? Number.POSITIVE_INFINITY;
    return version.open && version.address === address && version.at <= to && end >= from;
  });

const repeat = async (signal: AbortSignal, everyMs: number, work: () => Promise<void>): Promise<void> => {
  while (!signal.aborted) {
    // What is down now is up again soon: trouble is expected here.
    await work().catch(() => undefined);
    await pause(everyMs, signal);
  }
};

const job = (url: string, signal: AbortSignal) => async (): Promise<void> => {
  const answer = await fetch(`${url}/`, { method: 'POST', signal });
  await answer.arrayBuffer();
};

/** `share` is how many such lives go on at once: each of them is that much slower. */
export const startBackground = (world: World, witness: Witness, share: number): Background => {
  const { urls } = world.installation.deployments;
  const { control } = world.stack.cloud.compute;
  const ended = new AbortController();
  const { signal } = ended;
  const sightings: Sighting[] = [];
  let leases = 0;
  let lists = 0;
  let onDead = 0;

  const list = async (): Promise<void> => {
    const from = Date.now();
    const answer = await fetch(`${urls.discovery}/v1/proxies?limit=1000`, { signal });
    const to = Date.now();
    if (answer.status !== 200) return;
    const { items } = listSchema.parse(await answer.json());
    lists += 1;
    for (const { proxy, host, port } of items)
      sightings.push({ uid: proxy.uid, address: `${host}:${port}`, from, to });
  };

  const lease = async (): Promise<void> => {
    const granted = await acquire(urls.discovery, { holder: 'chaos', ttlSeconds: 10 });
    leases += 1;
    const alive = control
      .instances()
      .some(({ address, status }) => address === granted.host && status === 'RUNNING');
    if (!alive) onDead += 1;
    await release(urls.discovery, granted);
  };

  const running = Promise.all([
    repeat(signal, 150 * share, lease),
    repeat(signal, 100 * share, lease),
    repeat(signal, 250 * share, list),
    repeat(signal, 3_000, job(urls.gc, signal)),
    repeat(signal, 5_000, job(urls.health, signal)),
  ]);
  return {
    leases: () => leases,
    lists: () => lists,
    onDead: () => onDead,
    listed: () =>
      sightings
        .filter((sighting) => !isAllowed(witness, sighting))
        .map(
          ({ uid, address, from, to }) =>
            `B1: ${uid} was listed at ${address} (${from} to ${to}), where its gate was not open`,
        ),
    async stop() {
      ended.abort();
      await running;
    },
  };
};
