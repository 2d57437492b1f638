/** What every provider of machines has to do, whatever stands behind it. */

import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import type { Machine, MachineProvider, MachineSpec, OperationResult } from '#shared/domain/machine.ts';
import {
  eventually,
  getThrough,
  startTarget,
  tunnelThrough,
  type Target,
} from '#test/compute/through-proxy.ts';

export interface ProviderUnderTest {
  readonly provider: MachineProvider;
  readonly installation: string;
  /** Another installation's provider on the same cloud. */
  readonly stranger: { readonly provider: MachineProvider; readonly installation: string };
  readonly zone: string;
  /** A specification with a name of its own, that the given installation makes. */
  spec(installation: string, changes?: Partial<MachineSpec>): MachineSpec;
  /** The next create call is carried out, and its answer lost. */
  loseNextCreateReply(): void;
  /** The next live read gets no answer, or one that says nothing. */
  failNextGet(): void;
  /** The machine of this name leaves behind what a machine of this provider can. */
  leaveBehind(name: string): void;
  stop(): Promise<void>;
}

const CREDENTIALS = { username: 'crawler', password: 'pa55word' };
const soon = (): AbortSignal => AbortSignal.timeout(10_000);

/** Registers the contract's tests for the provider that `start` makes. */
export const machineProviderContract = (name: string, start: () => Promise<ProviderUnderTest>): void => {
  describe(`${name} as a provider of machines`, () => {
    let under: ProviderUnderTest;
    let target: Target;

    const create = async (spec: MachineSpec, provider = under.provider): Promise<OperationResult> =>
      provider.wait(await provider.create(spec, under.zone, randomUUID()), soon());
    const made = async (changes: Partial<MachineSpec> = {}): Promise<Machine> => {
      const spec = under.spec(under.installation, changes);
      expect(await create(spec)).toEqual({ kind: 'succeeded' });
      return running(spec.name);
    };
    const running = (machineName: string): Promise<Machine> =>
      eventually(async () => {
        const machine = await under.provider.get(machineName, under.zone);
        return machine?.state === 'running' && machine.address !== undefined ? machine : undefined;
      });
    const destroyed = async (machine: Machine): Promise<void> => {
      const operation = await under.provider.delete(machine);
      if (operation) expect(await under.provider.wait(operation, soon())).toEqual({ kind: 'succeeded' });
      await eventually(
        async () => (await under.provider.get(machine.name, machine.zone)) === undefined || undefined,
      );
    };

    /** The name of a machine that is gone and has left behind what it can. */
    const leavingBehind = async (installation: string): Promise<string> => {
      const { provider } = installation === under.installation ? under : under.stranger;
      const spec = under.spec(installation);
      expect(await create(spec, provider)).toEqual({ kind: 'succeeded' });
      const machine = await provider.get(spec.name, under.zone);
      if (!machine) throw new Error('no machine was made');
      under.leaveBehind(spec.name);
      const operation = await provider.delete(machine);
      if (operation) await provider.wait(operation, soon());
      return spec.name;
    };

    beforeAll(async () => {
      under = await start();
      target = await startTarget();
    });
    afterAll(async () => {
      await target.close();
      await under.stop();
    });

    test('a machine comes up with its identity, and pages come through it from its own address', async () => {
      const spec = under.spec(under.installation, { credentials: CREDENTIALS });
      const before = Date.now() - 2_000;
      expect(await create(spec)).toEqual({ kind: 'succeeded' });
      const machine = await running(spec.name);
      expect(machine).toMatchObject({
        name: spec.name,
        zone: under.zone,
        installation: under.installation,
        uid: spec.ref.uid,
        hash: spec.hash,
      });
      expect(machine.createdAt).toBeGreaterThan(before);
      const proxy = { host: machine.address ?? '', port: spec.port, credentials: CREDENTIALS };
      const page = await eventually(() => getThrough(proxy, target));
      expect(page).toEqual({ status: 200, body: machine.address });
      expect(await tunnelThrough(proxy, target)).toEqual({ status: 200, body: machine.address });
      const stranger = { ...proxy, credentials: { ...CREDENTIALS, password: 'guessed' } };
      expect(await getThrough(stranger, target)).toMatchObject({ status: 407 });
      expect(await tunnelThrough({ ...proxy, credentials: undefined }, target)).toMatchObject({
        status: 407,
      });
    });

    test('row 41: an existing name is a Conflict, and the machine that has it stays what it is', async () => {
      const machine = await made();
      const again = under.spec(under.installation, { name: machine.name, hash: 'fedcba9876543210' });
      await expect(under.provider.create(again, under.zone, randomUUID())).rejects.toMatchObject({
        code: 'Conflict',
      });
      expect(await under.provider.get(machine.name, under.zone)).toEqual(machine);
    });

    test('row 42: a create call whose answer was lost is repeated under its request id and makes one machine', async () => {
      const spec = under.spec(under.installation);
      const requestId = randomUUID();
      under.loseNextCreateReply();
      await expect(under.provider.create(spec, under.zone, requestId)).rejects.toMatchObject({
        code: 'Transient',
      });
      const operation = await under.provider.create(spec, under.zone, requestId);
      expect(await under.provider.wait(operation, soon())).toEqual({ kind: 'succeeded' });
      const { machines } = await under.provider.list();
      expect(machines.filter(({ name: other }) => other === spec.name)).toHaveLength(1);
    });

    test('K3: only a plain "not found" is absence', async () => {
      expect(await under.provider.get(under.spec(under.installation).name, under.zone)).toBeUndefined();
      const machine = await made();
      under.failNextGet();
      await expect(under.provider.get(machine.name, under.zone)).rejects.toMatchObject({ code: 'Transient' });
    });

    test('row 44: a deleted machine is gone, and deleting it again is done already', async () => {
      const machine = await made();
      await destroyed(machine);
      expect(await under.provider.delete(machine)).toBeUndefined();
    });

    test('W4: deleting a machine leaves alone its successor under the same name', async () => {
      const old = await made();
      await destroyed(old);
      const successor = await made({ name: old.name });
      expect(successor.instanceId).not.toBe(old.instanceId);
      expect(await under.provider.delete(old)).toBeUndefined();
      expect(await under.provider.get(old.name, under.zone)).toEqual(successor);
    });

    test('B2: lists every machine of its installation and none of another', async () => {
      const own = await made();
      const foreign = under.spec(under.stranger.installation);
      expect(await create(foreign, under.stranger.provider)).toEqual({ kind: 'succeeded' });
      const listing = await under.provider.list();
      expect(listing).toMatchObject({ unknownZones: [], partial: false });
      expect(listing.machines).toContainEqual(own);
      expect(new Set(listing.machines.map(({ installation }) => installation))).toEqual(
        new Set([under.installation]),
      );
      const names = (await under.stranger.provider.list()).machines.map((machine) => machine.name);
      expect(names).toEqual([foreign.name]);
    });

    test('lists the machines of one Proxy', async () => {
      const [own] = [await made(), await made()];
      expect((await under.provider.list(own.uid)).machines).toEqual([own]);
    });

    test('B2: lists what machines of its installation left behind, and deletes exactly what is meant', async () => {
      const [own, other] = [
        await leavingBehind(under.installation),
        await leavingBehind(under.stranger.installation),
      ];
      const alive = await made();
      const { leftovers, ...coverage } = await under.provider.listLeftovers();
      expect(coverage).toEqual({ unknownZones: [], partial: false });
      const names = leftovers.map((leftover) => leftover.name);
      expect(names).not.toContain(other);
      expect(names).not.toContain(alive.name);
      const left = leftovers.find((leftover) => leftover.name === own);
      // A provider whose machines leave nothing has nothing to list.
      expect(left).toEqual(await under.provider.leftover(own, under.zone));
      if (!left) return;
      expect(left).toMatchObject({ zone: under.zone, installation: under.installation });
      expect(left.createdAt).toBeGreaterThan(Date.now() - 60_000);
      expect(await under.stranger.provider.deleteLeftover(left)).toBeUndefined();
      expect(await under.provider.deleteLeftover({ ...left, id: '1' })).toBeUndefined();
      const operation = await under.provider.deleteLeftover(left);
      expect(operation && (await under.provider.wait(operation, soon()))).toEqual({ kind: 'succeeded' });
      const after = (await under.provider.listLeftovers()).leftovers;
      expect(after.map((leftover) => leftover.name)).not.toContain(own);
    });

    test('a wait that is given up is still running', async () => {
      const spec = under.spec(under.installation);
      const operation = await under.provider.create(spec, under.zone, randomUUID());
      const abort = new AbortController();
      const waiting = under.provider.wait(operation, abort.signal);
      abort.abort();
      expect(await waiting).toEqual({ kind: 'running' });
      expect(await under.provider.wait(operation, soon())).toEqual({ kind: 'succeeded' });
    });
  });
};
