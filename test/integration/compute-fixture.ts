/** A Compute Engine stand-in and providers on it. */

import { randomBytes } from 'node:crypto';

import { systemClock as clock } from '#shared/app/clock.ts';
import { systemIds as ids } from '#shared/app/ids.ts';
import { makeLog } from '#shared/app/log.ts';
import { openComputeProvider } from '#shared/compute/provider.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import { makeAddressAllocator } from '#test/compute/addresses.ts';
import {
  startComputeStandIn,
  type ComputeStandIn,
  type ComputeStandInOptions,
} from '#test/compute/stand-in.ts';
import { claimLoopbackRange } from '#test/services/ports.ts';

export interface ComputeFixture {
  readonly projectId: string;
  readonly standIn: ComputeStandIn;
  provider(installation: string): MachineProvider;
  stop(): Promise<void>;
}

/** Everything of its own: project, loopback range, port. Problems of the stand-in itself go to standard error. */
export const startCompute = async ({
  addresses = 253,
  ...options
}: Pick<ComputeStandInOptions, 'operationMs' | 'bootMs' | 'longestPage'> & {
  /** How many there are. */
  readonly addresses?: number;
} = {}): Promise<ComputeFixture> => {
  const projectId = `t${randomBytes(6).toString('hex')}`;
  const range = await claimLoopbackRange();
  const log = makeLog((line) => {
    if (line.includes('"ERROR"')) process.stderr.write(line);
  });
  const standIn = await startComputeStandIn({
    projectId,
    addresses: makeAddressAllocator(range, 1, addresses),
    operationMs: 60,
    bootMs: 20,
    log,
    ...options,
  });
  const opened: MachineProvider[] = [];
  return {
    projectId,
    standIn,
    provider: (installation) => {
      const provider = openComputeProvider({
        projectId,
        installation,
        endpoint: standIn.url,
        clock,
        ids,
        log,
      });
      opened.push(provider);
      return provider;
    },
    stop: async () => {
      await Promise.all(opened.map((provider) => provider.close()));
      await standIn.stop();
      await range.release();
    },
  };
};
