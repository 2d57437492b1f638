/** The machines of a record, each by a live read in every zone in which it was ever asked for. */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { MachineProvider } from '#shared/domain/machine.ts';
import type { MachineIntent } from '#shared/domain/record.ts';

import { placeKey, type Memory } from './memory.ts';
import type { Fleet, Sighting } from './plan.ts';
import { UNSEEN_REMEDY, sentence } from './remedies.ts';
import { WATCH_MS } from './tidy.ts';

type Trouble = Extract<Fleet, { kind: 'seen' }>['trouble'];

/** What this call knows without asking. */
const known = (name: string, zone: string, memory: Memory): Sighting | undefined => {
  const refusedOutright = memory.refusals.some(
    (refusal) =>
      refusal.leftNothing &&
      refusal.behaviour !== 'Conflict' &&
      refusal.machine === name &&
      refusal.zone === zone,
  );
  if (refusedOutright || memory.untouched.has(placeKey(zone, name))) return { zone, kind: 'untouched' };
  const isInFlight = [...memory.pending.values()].some(
    ({ kind, machine, operation }) => kind === 'create' && machine === name && operation.zone === zone,
  );
  return isInFlight ? { zone, kind: 'inFlight' } : undefined;
};

const absent = (zone: string, key: string, memory: Memory, clock: Clock): Sighting => {
  const since = memory.absentSince.get(key) ?? clock.monotonic();
  memory.absentSince.set(key, since);
  return { zone, kind: clock.monotonic() - since >= WATCH_MS ? 'absentTwice' : 'absentOnce' };
};

/** What is surely not there may have left something behind. */
const gone = async (
  provider: MachineProvider,
  name: string,
  zone: string,
  memory: Memory,
  clock: Clock,
): Promise<Sighting> => {
  const sighting = absent(zone, placeKey(zone, name), memory, clock);
  if (sighting.kind !== 'absentTwice') return sighting;
  const leftover = await provider.leftover(name, zone);
  return leftover ? { zone, kind: 'leftover', leftover } : sighting;
};

/** One read. A zone that the provider does not know at all holds no machine that was never seen. */
const ask = async (
  provider: MachineProvider,
  intent: MachineIntent,
  zone: string,
  memory: Memory,
  clock: Clock,
): Promise<Sighting> => {
  const key = placeKey(zone, intent.name);
  try {
    const machine = await provider.get(intent.name, zone);
    if (!machine) return await gone(provider, intent.name, zone, memory, clock);
    memory.absentSince.delete(key);
    return { zone, kind: 'machine', machine };
  } catch (error) {
    if (!hasCode(error, 'InvalidSpec') || intent.instanceId !== undefined) throw error;
    return absent(zone, key, memory, clock);
  }
};

const troubleOf = (error: SystemError): NonNullable<Trouble> => {
  const words = error.provider ? `${error.provider.code}: ${error.provider.message}` : error.message;
  const transient = hasCode(error, 'Transient', 'QuotaExceeded');
  return { transient, message: transient ? words : `${sentence(words)} ${UNSEEN_REMEDY}` };
};

/** A place that cannot be looked at hides no other, and is not taken for empty. */
export const readMachines = async (
  provider: MachineProvider,
  intents: readonly MachineIntent[],
  memory: Memory,
  clock: Clock,
): Promise<Fleet> => {
  let trouble: Trouble;
  const look = async (intent: MachineIntent, zone: string): Promise<Sighting> => {
    try {
      return known(intent.name, zone, memory) ?? (await ask(provider, intent, zone, memory, clock));
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
      trouble = troubleOf(error);
      return { zone, kind: 'unseen' };
    }
  };
  const machines = await Promise.all(
    intents.map(async (intent) => {
      const sightings = await Promise.all(intent.zones.map((zone) => look(intent, zone)));
      return [intent.name, sightings] as const;
    }),
  );
  return { kind: 'seen', machines: Object.fromEntries(machines), ...(trouble ? { trouble } : {}) };
};
