/** Everything that goes wrong: faults of the provider, machines that fail, kills, and messages that come as they please. */

import { pause } from '#shared/app/wait.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';
import type { Fault } from '#test/compute/faults.ts';
import type { World } from '#test/e2e/world.ts';

import { ZONES, type Fleet, type Slot } from './fleet.ts';
import type { Random } from './random.ts';

const [FIRST_ZONE] = ZONES;

/** Faults from which the product recovers within a minute or so. */
const SHORT: readonly Fault[] = [
  { kind: 'stockOut', method: 'instances.insert', zone: FIRST_ZONE, count: 2 },
  { kind: 'stockOut', method: 'instances.insert', zone: FIRST_ZONE, details: true, count: 1 },
  { kind: 'quota', method: 'instances.insert', count: 1 },
  { kind: 'quotaRefused', method: 'instances.insert', count: 1 },
  {
    kind: 'operationError',
    method: 'instances.insert',
    code: 'INTERNAL_ERROR',
    message: 'It broke.',
    count: 1,
  },
  {
    kind: 'operationError',
    method: 'instances.start',
    code: 'INTERNAL_ERROR',
    message: 'It broke.',
    count: 1,
  },
  { kind: 'slowOperation', ms: 3_000, count: 4 },
  { kind: 'slowResponse', ms: 1_500, count: 4 },
  { kind: 'lostResponse', method: 'instances.insert', count: 2 },
  { kind: 'lostResponse', method: 'instances.delete', count: 2 },
  { kind: 'lostResponse', method: 'instances.get', count: 2 },
  { kind: 'lostResponse', method: 'operations.list', count: 2 },
  { kind: 'status', statuses: [503, 429], count: 2 },
  { kind: 'status', method: 'instances.get', statuses: [404], count: 1 },
  { kind: 'status', method: 'operations.list', statuses: [403, 500], count: 1 },
  { kind: 'status', method: 'instances.insert', statuses: [409], count: 1 },
  { kind: 'status', method: 'instances.delete', statuses: [503, 404], count: 1 },
  { kind: 'boot', delayMs: 4_000, count: 2 },
];

/** Faults of what gc looks at. */
const OF_LISTS: readonly Fault[] = [
  { kind: 'status', method: 'instances.aggregatedList', statuses: [500, 403, 400], count: 1 },
  { kind: 'status', method: 'instances.aggregatedList', statuses: [429, 503], count: 2 },
  { kind: 'slowResponse', method: 'instances.aggregatedList', ms: 4_000, count: 2 },
  { kind: 'lostResponse', method: 'instances.aggregatedList', count: 2 },
  { kind: 'keptDisk', count: 2 },
  { kind: 'slowOperation', method: 'instances.insert', ms: 8_000, count: 3 },
];

/** Faults that the product waits out for minutes. */
const LONG: readonly Fault[] = [
  { kind: 'stockOut', method: 'instances.insert', count: 4 },
  { kind: 'quota', method: 'instances.insert', count: 6 },
  { kind: 'status', method: 'instances.insert', statuses: [403], count: 2 },
  { kind: 'status', method: 'instances.insert', statuses: [400], count: 1 },
  { kind: 'status', method: 'instances.delete', statuses: [403], count: 1 },
  {
    kind: 'operationError',
    method: 'instances.delete',
    code: 'INTERNAL_ERROR',
    message: 'It broke.',
    count: 1,
  },
];

export interface Trouble {
  /** Switches on one fault of some kind. */
  fault(): string;
  /** A zone does not answer for a moment. */
  darkZone(): Promise<string>;
  /** Something happens to one machine. */
  machine(): Promise<string>;
  kill(): string;
  /** Duplicated, reordered, late and foreign messages, straight to provision. */
  messages(): Promise<string>;
  /** Ends all of it, and makes running machines serve again. */
  end(): Promise<void>;
}

const MODES = ['blackhole', 'refuse', '407', '502'] as const;

const uidOf = (labels: Readonly<Record<string, string>>): string => labels[MACHINE_LABELS.uid] ?? '';

const envelope = (slot: Slot, namespace: string, id: string): string =>
  JSON.stringify({
    message: {
      data: Buffer.from(
        JSON.stringify({ namespace, name: slot.name, uid: slot.uid, reason: 'Repeated' }),
      ).toString('base64'),
      messageId: id,
      orderingKey: slot.uid,
    },
    subscription: 'chaos',
  });

export const makeTrouble = (world: World, fleet: Fleet, random: Random, patient: boolean): Trouble => {
  const { control } = world.stack.cloud.compute;
  const { provision } = world.installation.deployments.instances;
  const faults = [...SHORT, ...OF_LISTS, ...(patient ? LONG : [])];
  const darkness = new Set<Promise<void>>();
  let posted = 0;

  const post = async (slot: Slot): Promise<void> => {
    posted += 1;
    await fetch(`${provision.url}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: envelope(slot, world.namespace, String(posted)),
      // A killed instance answers nobody.
    }).then(
      (answer) => answer.arrayBuffer(),
      () => undefined,
    );
  };

  return {
    fault() {
      const fault = random.pick(faults);
      control.addFault(fault);
      return JSON.stringify(fault);
    },
    async darkZone() {
      const zone = random.pick(ZONES);
      const id = control.addFault({
        kind: 'unreachableZone',
        zone,
        how: random.pick(['warning', 'unreachables', 'both']),
      });
      const lifted = pause(500 + random.int(2_500)).then(() => void control.removeFault(id));
      darkness.add(lifted);
      return `zone ${zone} is unreachable`;
    },
    async machine() {
      const running = control
        .instances()
        .filter(({ status, labels }) => status === 'RUNNING' && fleet.ofUid(uidOf(labels)));
      if (running.length === 0) return 'no machine to trouble';
      const { name, zone, labels, listening } = random.pick(running);
      const slot = fleet.ofUid(uidOf(labels));
      if (slot) fleet.note(slot, `trouble with ${name}`);
      const happening = random.pick(['preempt', 'stop', 'restart', 'vanish', 'mode'] as const);
      try {
        if (happening !== 'mode') await control[happening](name, zone);
        else if (listening) await control.setProxyMode(name, { kind: random.pick(MODES) }, zone);
      } catch {
        // It went away meanwhile, or its own operation fell to a fault.
      }
      return `${happening} ${name}`;
    },
    kill() {
      try {
        provision.kill('SIGKILL');
      } catch {
        // It is dead already.
      }
      return 'provision is killed';
    },
    async messages() {
      const known = fleet.slots.filter(({ uid }) => uid !== '');
      if (known.length === 0) return 'nobody to write to';
      const some = Array.from({ length: 1 + random.int(3) }, () => random.pick(known));
      const all = random.shuffled([...some, ...some]);
      // Nobody waits for the answers: a push is answered after up to two minutes.
      for (const slot of all) void post(slot);
      return `${all.length} messages`;
    },
    async end() {
      control.clearFaults();
      await Promise.all(darkness);
      control.clearFaults();
      for (const { name, zone, labels, listening } of control.instances()) {
        if (!listening || !fleet.ofUid(uidOf(labels))) continue;
        await control.setProxyMode(name, { kind: 'ok' }, zone).catch(() => undefined);
      }
    },
  };
};
