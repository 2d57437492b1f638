/**
 * Goal 14: six changes of one Proxy, each with its message, delivered in any order and twice. A change happens just before
 * the first delivery of its own or of a later message, as late as it can.
 */

import type { ProxyRecord } from '#shared/domain/record.ts';
import type { VerdictState } from '#shared/domain/verdict.ts';
import { uidBase36 } from '#shared/domain/names.ts';
import type { Random } from '#test/chaos/random.ts';
import type { ComputeControl } from '#test/compute/control.ts';

export interface ShuffleWorld {
  readonly control: Pick<ComputeControl, 'calls' | 'instances'>;
  create(name: string, spec: object): Promise<string>;
  edit(name: string, spec: object): Promise<void>;
  remove(name: string): Promise<void>;
  isThere(name: string): Promise<boolean>;
  judge(uid: string, state: VerdictState): Promise<boolean>;
  push(name: string, uid: string, reason: string): Promise<number>;
  record(uid: string): Promise<ProxyRecord | undefined>;
}

export interface Shuffle {
  /** Messages 0 to 5 in the order of their deliveries; each occurs at least once. */
  readonly deliveries: readonly number[];
  /** Does not wait for an answer before the next delivery. */
  readonly concurrent: boolean;
  /** The sixth change: the Proxy is cordoned, or deleted. */
  readonly ending: 'cordoned' | 'deleted';
}

const zones = ['europe-west1-b'];
const image = 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64';
const specOf = (machineType: string): object => ({
  provider: 'gcp',
  drainTimeoutSeconds: 0,
  gcp: { zones, machineType, image },
});

/** Which machine is asked for after each change. */
const TEMPLATES = ['a', 'b', 'b', 'b', 'c', 'c'] as const;

/** All orders of 0 to `count` - 1. */
export const permutations = (count: number): readonly (readonly number[])[] => {
  const extend = (head: readonly number[]): readonly (readonly number[])[] =>
    head.length === count
      ? [head]
      : Array.from({ length: count }, (_, index) => index)
          .filter((index) => !head.includes(index))
          .flatMap((index) => extend([...head, index]));
  return extend([]);
};

/** Each message once more, anywhere after its first delivery. */
export const duplicated = (order: readonly number[], random: Random): readonly number[] =>
  order.reduce<readonly number[]>((all, message) => {
    const first = all.indexOf(message);
    const at = first + 1 + random.int(all.length - first);
    return [...all.slice(0, at), message, ...all.slice(at)];
  }, order);

/** How many machines are asked for when every delivery is seen through before the next. */
const needed = ({ deliveries, ending }: Shuffle): number => {
  const templates = new Set<string>();
  let newest = -1;
  for (const message of deliveries) {
    newest = Math.max(newest, message);
    const template = TEMPLATES[newest];
    if (template && !(ending === 'deleted' && newest === 5)) templates.add(template);
  }
  return templates.size;
};

const deliver = async (world: ShuffleWorld, name: string, shuffle: Shuffle): Promise<string> => {
  let uid = '';
  const changes: readonly (() => Promise<unknown>)[] = [
    async () => {
      uid = await world.create(name, specOf('e2-micro'));
    },
    () => world.edit(name, specOf('e2-small')),
    () => world.edit(name, { maxLeases: 7 }),
    () => world.judge(uid, 'Healthy'),
    () => world.edit(name, specOf('e2-medium')),
    () => (shuffle.ending === 'deleted' ? world.remove(name) : world.edit(name, { cordoned: true })),
  ];
  let done = 0;
  const answers: Promise<number>[] = [];
  for (const message of shuffle.deliveries) {
    for (; done <= message; done += 1) await changes[done]?.();
    const answer = world.push(name, uid, `change ${message}`);
    answers.push(answer);
    if (!shuffle.concurrent) await answer;
  }
  const refused = (await Promise.all(answers)).filter((status) => status >= 300);
  if (refused.length > 0) throw new Error(`${refused.length} pushes were refused`);
  return uid;
};

/** As health would once everything answers; more than once, since a switch and a clearing away take a push each. */
const settle = async (world: ShuffleWorld, name: string, uid: string): Promise<void> => {
  for (let round = 0; round < 2; round += 1) {
    await world.judge(uid, 'Healthy');
    await world.push(name, uid, 'verdict');
  }
};

const machinesOf = ({ control }: ShuffleWorld, uid: string) =>
  control.instances().filter(({ labels }) => labels['egress-proxy-uid'] === uid);

const notGone = async (world: ShuffleWorld, name: string, uid: string): Promise<string | undefined> => {
  const machines = machinesOf(world, uid).length;
  if (machines > 0) return `${machines} machines are left`;
  const record = await world.record(uid);
  return (await world.isThere(name)) || record?.gone === false ? 'the Proxy is not gone' : undefined;
};

const notNewest = async (world: ShuffleWorld, uid: string): Promise<string | undefined> => {
  const [machine, ...others] = machinesOf(world, uid);
  const record = await world.record(uid);
  if (!machine || others.length > 0) return `${others.length + (machine ? 1 : 0)} machines`;
  if (!record?.cordoned || record.maxLeases !== 7) return `the record is of generation ${record?.generation}`;
  const hash = record.machines.at(-1)?.hash;
  const serves = record.serving?.machine === machine.name && machine.labels['egress-proxy-hash'] === hash;
  return serves ? undefined : `${machine.name} does not serve`;
};

/** Undefined when everything is as it must be, else what is not. */
export const runShuffle = async (
  world: ShuffleWorld,
  name: string,
  shuffle: Shuffle,
): Promise<string | undefined> => {
  const story = `${shuffle.deliveries.join(' ')}${shuffle.concurrent ? ' at once' : ''}, ${shuffle.ending}`;
  const uid = await deliver(world, name, shuffle);
  if (shuffle.ending !== 'deleted') await settle(world, name, uid);
  const wrong = await (shuffle.ending === 'deleted' ? notGone(world, name, uid) : notNewest(world, uid));
  if (wrong) return `${story}: ${wrong}`;
  const key = uidBase36(uid);
  const inserts = world.control
    .calls({ method: 'instances.insert' })
    .filter((call) => call.name?.includes(key))
    .map((call) => call.name?.split('-')[2]);
  if (new Set(inserts).size < inserts.length)
    return `${story}: ${inserts.length} create calls for ${new Set(inserts).size} generations`;
  const wanted = needed(shuffle);
  const fits = shuffle.concurrent ? inserts.length <= wanted : inserts.length === wanted;
  return fits ? undefined : `${story}: ${inserts.length} create calls instead of ${wanted}`;
};
