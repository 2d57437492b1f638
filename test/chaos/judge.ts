/** What the world looks like in the end, and whether any machine was taken away that was wanted. */

import { z } from 'zod';

import { MACHINE_LABELS, machinePrefix, uidBase36 } from '#shared/domain/names.ts';
import { condition, type ProxyView, type World } from '#test/e2e/world.ts';

import type { Fleet, Slot } from './fleet.ts';
import type { Witness } from './witness.ts';

/** A reason that came so shortly before a machine began to serve may have ended it all the same. */
const SLACK_MS = 3_000;

/** Delete calls that took a machine which served, as far as anybody knew, what its Proxy asks for. */
export const wrongDeletions = (world: World, fleet: Fleet, witness: Witness): readonly string[] => {
  const byPrefix = new Map<string, Slot[]>();
  for (const slot of fleet.slots)
    if (slot.uid) byPrefix.set(uidBase36(slot.uid), [...(byPrefix.get(uidBase36(slot.uid)) ?? []), slot]);
  const deletes = world.stack.cloud.compute.control
    .calls({ method: 'instances.delete' })
    .filter(({ status }) => status === 200 || status === 0);
  return deletes.flatMap(({ name = '', at }) => {
    const [, key = ''] = name.split('-');
    return (byPrefix.get(key) ?? []).flatMap((slot) => {
      const versions = witness.records(slot.uid);
      const then = versions.findLast((version) => version.at <= at)?.record;
      if (then?.serving?.machine === name && !then.gone)
        return [`${name} of ${slot.name} was deleted while it was published`];
      const served = versions.filter(({ record }) => record.serving?.machine === name);
      const last = served.at(-1);
      if (!last) return [];
      const excused = slot.reasons.some((reason) => reason.at >= last.at - SLACK_MS && reason.at <= at);
      const first = served[0]?.at ?? 0;
      const edited = slot.reasons.some((reason) => reason.at >= first - SLACK_MS && reason.at <= at);
      return excused || edited
        ? []
        : [`${name} of ${slot.name} was deleted although it served what was asked for`];
    });
  });
};

const instanceSchema = z.looseObject({
  machineType: z.string(),
  metadata: z.looseObject({ items: z.array(z.object({ key: z.string(), value: z.string() })).default([]) }),
});

const readInstance = async (world: World, zone: string, name: string) => {
  const project = world.stack.env['GOOGLE_CLOUD_PROJECT'] ?? '';
  const path = `/compute/v1/projects/${project}/zones/${zone}/instances/${name}`;
  const answer = await fetch(`${world.stack.cloud.compute.url}${path}`);
  return instanceSchema.safeParse(await answer.json()).data;
};

const isStalled = (proxy: ProxyView | undefined): boolean =>
  proxy?.status.conditions.some(({ type, status }) => type === 'Stalled' && status === 'True') ?? false;

const machinesOf = (world: World, uid: string) =>
  world.stack.cloud.compute.control.instances().filter(({ labels }) => labels[MACHINE_LABELS.uid] === uid);

const notReady = (proxy: ProxyView): string | undefined => {
  if (condition(proxy, 'Ready', 'True')) return undefined;
  const told = proxy.status.conditions.map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  );
  return `not Ready${isStalled(proxy) ? ' (a person is asked)' : ''}: ${told.join(' | ')}`;
};

/** What is wrong with how the machine was made. */
const misshapen = async (
  world: World,
  fleet: Fleet,
  slot: Slot,
  { zone, name }: { readonly zone: string; readonly name: string },
): Promise<string | undefined> => {
  const instance = await readInstance(world, zone, name);
  if (!instance?.machineType.endsWith(`/${slot.machineType}`))
    return `${name} is an ${instance?.machineType ?? 'unknown type'}, not an ${slot.machineType}`;
  const password = instance.metadata.items.find(({ key }) => key === 'proxy-password')?.value;
  const wanted = slot.withSecrets ? fleet.credentials().password : undefined;
  return password === wanted ? undefined : `${name} has other credentials than its Secret`;
};

/** Why a Proxy that is wanted has not what it asks for; undefined when all is well. */
const lacking = async (
  world: World,
  fleet: Fleet,
  slot: Slot,
  proxy: ProxyView | undefined,
): Promise<string | undefined> => {
  if (proxy?.metadata.uid !== slot.uid) return 'there is no such Proxy';
  const unready = notReady(proxy);
  if (unready) return unready;
  const machines = machinesOf(world, slot.uid);
  const [machine, ...others] = machines;
  if (!machine || others.length > 0)
    return `${machines.length} machines: ${machines.map(({ name, status }) => `${name} ${status}`).join(', ')}`;
  if (machine.status !== 'RUNNING' || machine.address !== proxy.status.host)
    return `${machine.name} is ${machine.status} at ${machine.address ?? 'no address'}, not at ${proxy.status.host ?? 'none'}`;
  return misshapen(world, fleet, slot, machine);
};

const leftOver = (world: World, slot: Slot, proxy: ProxyView | undefined): string | undefined => {
  if (proxy?.metadata.uid === slot.uid && slot.uid !== '')
    return `still there: ${JSON.stringify(proxy.status.conditions)}`;
  const machines = machinesOf(world, slot.uid);
  return machines.length === 0 ? undefined : `${machines.length} machines are left`;
};

/** What differs from what the Proxies describe, one line each. */
export const differences = async (world: World, fleet: Fleet): Promise<readonly string[]> => {
  const proxies = new Map((await world.list()).map((proxy) => [proxy.metadata.name, proxy]));
  const lines = await Promise.all(
    fleet.slots.map(async (slot) => {
      const proxy = proxies.get(slot.name);
      const present = slot.phase === 'present';
      const why = present ? await lacking(world, fleet, slot, proxy) : leftOver(world, slot, proxy);
      return why === undefined ? [] : [`${slot.name} (${slot.uid}): ${why}`];
    }),
  );
  const known = new Set(fleet.slots.map(({ uid }) => uid));
  const strays = world.stack.cloud.compute.control
    .instances()
    .filter(({ name }) => name.startsWith(machinePrefix(world.installation.id)))
    .filter(({ labels }) => labels[MACHINE_LABELS.uid] && !known.has(labels[MACHINE_LABELS.uid] ?? ''))
    .map(({ name }) => `${name} belongs to no Proxy`);
  return [...lines.flat(), ...strays];
};
