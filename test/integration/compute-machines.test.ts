import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { MachineProvider } from '#shared/domain/machine.ts';
import { machineSpec } from '#test/compute/builders.ts';
import type { ComputeControl } from '#test/compute/control.ts';
import type { ProxyMode } from '#test/compute/forward-proxy.ts';
import {
  eventually,
  getThrough,
  startTarget,
  tunnelThrough,
  type Target,
} from '#test/compute/through-proxy.ts';

import { startCompute, type ComputeFixture } from './compute-fixture.ts';

interface Running {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

const serversAndTimers = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap' || kind === 'Timeout').length;

describe('the machines of the Compute Engine stand-in', () => {
  let compute: ComputeFixture;
  let control: ComputeControl;
  let provider: MachineProvider;
  let target: Target;

  const runningMachine = async (
    of: { provider: MachineProvider; control: ComputeControl } = { provider, control },
  ): Promise<Running> => {
    const spec = machineSpec('prod');
    await of.provider.create(spec, 'europe-west1-b', randomUUID());
    return eventually(async () => {
      const view = of.control.instances().find(({ name }) => name === spec.name);
      return view?.listening
        ? { name: spec.name, host: view.address ?? '', port: view.port ?? 0 }
        : undefined;
    });
  };
  /** The status of both kinds of requests, or why there was none. */
  const outcomes = async (proxy: Running): Promise<readonly string[]> => {
    const asked = [getThrough, tunnelThrough].map(async (through) => {
      try {
        return String((await through(proxy, target)).status);
      } catch (error) {
        return error instanceof Error && 'code' in error ? String(error.code) : String(error);
      }
    });
    return Promise.all(asked);
  };

  beforeAll(async () => {
    compute = await startCompute();
    ({ control } = compute.standIn);
    provider = compute.provider('prod');
    target = await startTarget();
  });
  afterAll(async () => {
    await target.close();
    await compute.stop();
  });

  test.each<[ProxyMode, string]>([
    [{ kind: 'refuse' }, 'ECONNREFUSED'],
    [{ kind: '407' }, '407'],
    [{ kind: '502' }, '502'],
    [{ kind: 'slow', ms: 50 }, '200'],
  ])('a proxy can be told to be %j, and to be well again', async (mode, outcome) => {
    const proxy = await runningMachine();
    await control.setProxyMode(proxy.name, mode);
    expect(await outcomes(proxy)).toEqual([outcome, outcome]);
    await control.setProxyMode(proxy.name, { kind: 'ok' });
    expect(await outcomes(proxy)).toEqual(['200', '200']);
  });

  test('a black hole takes connections and never answers; they end when the machine does', async () => {
    const proxy = await runningMachine();
    await control.setProxyMode(proxy.name, { kind: 'blackhole' });
    const waiting = outcomes(proxy);
    await eventually(async () =>
      control.instances().find(({ name }) => name === proxy.name)?.requests === 2 ? true : undefined,
    );
    await control.stop(proxy.name);
    expect(await waiting).toEqual(['ECONNRESET', 'ECONNRESET']);
    expect(await outcomes(proxy)).toEqual(['ECONNREFUSED', 'ECONNREFUSED']);
  });

  test('a fault meets the machines that boot after it', async () => {
    const id = control.addFault({ kind: 'proxy', mode: { kind: '502' } });
    const ill = await runningMachine();
    expect(control.removeFault(id)).toBe(true);
    const well = await runningMachine();
    expect(await outcomes(ill)).toEqual(['502', '502']);
    expect(await outcomes(well)).toEqual(['200', '200']);
  });

  test('nothing is left after stop: no server, no timer, whatever was going on', async () => {
    const before = serversAndTimers();
    const other = await startCompute();
    const mine = { provider: other.provider('prod'), control: other.standIn.control };
    await runningMachine(mine);
    mine.control.addFault({ kind: 'slowOperation', ms: 600_000 });
    await mine.provider.create(machineSpec('prod'), 'europe-west1-c', randomUUID());
    expect(serversAndTimers()).toBeGreaterThan(before);
    await other.stop();
    await eventually(async () => (serversAndTimers() <= before ? true : undefined));
    await expect(fetch(other.standIn.url)).rejects.toThrow('fetch failed');
  });
});
