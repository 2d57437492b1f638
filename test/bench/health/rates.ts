/** Goal 10: how many probes a core does, what one in flight costs, and that none leaves a descriptor behind. */

import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';

import { z } from 'zod';

import { systemIds } from '#shared/app/ids.ts';
import { pause } from '#shared/app/wait.ts';

import { makeProber } from '../../../functions/health/probe/prober.ts';
import type { Target } from '../../../functions/health/probe/target.ts';
import type { BenchContext, Figure } from '../figure.ts';
import { bareConnect, bareHandshake, hostOf, placeOf, rateOf, targetOf } from './probes.ts';
import { start, type Servers } from './processes.ts';

const ADDRESSES = 10_000;
const IN_FLIGHT = 64;
const TURN = 500;
const LEAK_PROBES = 100_000;
const HELD = 4000;

const descriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length;

interface Total {
  calls: number;
  seconds: number;
  cpuMicros: number;
}
const emptyTotal = (): Total => ({ calls: 0, seconds: 0, cpuMicros: 0 });

const add = async (total: Total, count: number, call: (index: number) => Promise<void>): Promise<void> => {
  const before = process.cpuUsage();
  total.seconds += count / (await rateOf(count, IN_FLIGHT, call));
  const { user, system } = process.cpuUsage(before);
  total.calls += count;
  total.cpuMicros += user + system;
};

/** How the first compares with the second: 1 = as many per second. */
const rateRatio = (a: Total, b: Total): number => a.calls / a.seconds / (b.calls / b.seconds);
/** The same for a core that does nothing else: as many per second of CPU. */
const cpuRatio = (a: Total, b: Total): number => b.cpuMicros / b.calls / (a.cpuMicros / a.calls);

export const measureRates = async (servers: Servers, { say }: BenchContext): Promise<readonly Figure[]> => {
  const { proxyPort, tlsPort, authority } = servers;
  const context = createSecureContext({ ca: [authority.caPem] });
  const prober = makeProber(context, systemIds);
  const plain = targetOf('http://127.0.0.1:1/');
  const secure = targetOf(`https://127.0.0.1:${tlsPort}/`);
  let probes = 0;
  const through =
    (target: Target) =>
    async (index: number): Promise<void> => {
      probes += 1;
      const reply = await prober.probe({ endpoint: placeOf(index, proxyPort) }, [target], 10_000);
      if (reply.outcome !== 'Ok') throw new Error(`a probe failed: ${reply.outcome} ${reply.detail ?? ''}`);
    };
  const connects = (index: number): Promise<void> => bareConnect(hostOf(index), proxyPort);
  const handshakes = (index: number): Promise<void> => bareHandshake(hostOf(index), tlsPort, context);

  await rateOf(2000, IN_FLIGHT, connects);
  await rateOf(2000, IN_FLIGHT, through(plain));
  await rateOf(200, IN_FLIGHT, through(secure));
  const before = await descriptors();
  const limit = emptyTotal();
  const probing = emptyTotal();
  const tlsLimit = emptyTotal();
  const tlsProbing = emptyTotal();
  // In short turns, so that whatever else the machine does meets both sides.
  for (let from = 0; from < ADDRESSES; from += TURN) {
    await add(limit, TURN, (index) => connects(from + index));
    await add(probing, TURN, (index) => through(plain)(from + index));
    await add(tlsLimit, TURN / 5, (index) => handshakes(from + index));
    await add(tlsProbing, TURN / 5, (index) => through(secure)(from + index));
  }
  for (const [name, total] of Object.entries({ limit, probing, tlsLimit, tlsProbing }))
    say(
      `  ${name}: ${(total.calls / total.seconds).toFixed(0)}/s, ${(total.cpuMicros / total.calls).toFixed(0)} us of CPU each`,
    );
  await rateOf(Math.max(0, LEAK_PROBES - probes), IN_FLIGHT, through(plain));
  await pause(500);
  const growth = (await descriptors()) - before;
  return [
    {
      goal: 10,
      what: `probes of ${ADDRESSES} addresses, against bare TCP connects`,
      value: rateRatio(probing, limit),
      target: { atLeast: 0.6 },
      unit: 'x',
    },
    {
      goal: 10,
      what: 'the same by CPU time, which other work on the machine does not change',
      value: cpuRatio(probing, limit),
      target: { atLeast: 0.6 },
      unit: 'x',
    },
    {
      goal: 0,
      what: 'the same by CONNECT with TLS, against bare TLS handshakes, by CPU time',
      value: cpuRatio(tlsProbing, tlsLimit),
      target: { atLeast: 0.6 },
      unit: 'x',
    },
    {
      goal: 10,
      what: `descriptors more after ${Math.max(probes, LEAK_PROBES)} probes`,
      value: growth,
      target: { atMost: 0 },
      unit: '',
    },
  ];
};

const memorySchema = z.object({ perProbe: z.number(), heapPerProbe: z.number(), timedOut: z.number() });

export const measureMemory = async (
  { blackHolePort }: Servers,
  { say }: BenchContext,
): Promise<readonly Figure[]> => {
  const child = start('memory.ts', ['--expose-gc']);
  child.send({ port: blackHolePort, count: HELD });
  const message: readonly unknown[] = await once(child, 'message');
  const { perProbe, heapPerProbe, timedOut } = memorySchema.parse(message[0]);
  say(
    `  ${(perProbe / 1024).toFixed(1)} KiB (heap ${(heapPerProbe / 1024).toFixed(1)}) for each of ${HELD} probes; ${timedOut} ended by their budget`,
  );
  if (timedOut !== HELD) throw new Error(`only ${timedOut} of ${HELD} probes were in flight`);
  return [
    {
      goal: 10,
      what: `resident memory per probe, ${HELD} in flight`,
      value: perProbe / 1024,
      target: { atMost: 10 },
      unit: 'KiB',
    },
  ];
};
