/** A fresh process that holds thousands of probes open against a black hole and says what each of them costs. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';

import { z } from 'zod';

import { systemIds } from '#shared/app/ids.ts';

import { makeProber } from '../../../functions/health/probe/prober.ts';
import { placeOf, targetOf } from './probes.ts';

const askSchema = z.object({ port: z.number(), count: z.number() });

const measure = async ({ port, count }: z.output<typeof askSchema>): Promise<void> => {
  const prober = makeProber(createSecureContext(), systemIds);
  const target = targetOf('https://127.0.0.1:1/');
  const hold = (howMany: number, ms: number) =>
    Promise.all(
      Array.from({ length: howMany }, (_, index) =>
        prober.probe({ endpoint: placeOf(index, port) }, [target], ms),
      ),
    );
  // A process at work: what its garbage takes is there already, and is not counted as the probes'.
  const refused = () => prober.probe({ endpoint: placeOf(1, 1) }, [target], 1000);
  for (let turn = 0; turn < 60; turn += 1) await Promise.all(Array.from({ length: 64 }, refused));
  await hold(200, 300);
  globalThis.gc?.();
  await sleep(200);
  const { rss: before, heapUsed } = process.memoryUsage();
  const held = hold(count, 9000);
  await sleep(6000);
  globalThis.gc?.();
  const perProbe = (process.memoryUsage.rss() - before) / count;
  const heapPerProbe = (process.memoryUsage().heapUsed - heapUsed) / count;
  const outcomes = (await held).map(({ outcome }) => outcome);
  process.send?.({
    perProbe,
    heapPerProbe,
    timedOut: outcomes.filter((outcome) => outcome === 'Timeout').length,
  });
  process.disconnect();
};

process.once('message', (message) => void measure(askSchema.parse(message)));
