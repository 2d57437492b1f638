/** Who deleted what: no installation touches another's machines, and gc takes only old ones whose Proxy is gone. */

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';
import { machinePrefix, uidBase36 } from '#shared/domain/names.ts';
import type { ApiCall } from '#test/compute/calls.ts';
import type { World } from '#test/e2e/world.ts';
import { callApi } from '#test/services/api.ts';

/** The name under which a deployable of an installation calls the provider. */
export const callerOf = (installation: string, deployable: string): string => `${installation}/${deployable}`;

/** Until when (ms) each Proxy was surely there, by its UID as machine names spell it. */
export interface RollCall {
  lastSeen(uid: string): number;
  stop(): Promise<void>;
}

const CALL_EVERY_MS = 500;

const listSchema = z.looseObject({
  items: z.array(z.looseObject({ metadata: z.looseObject({ uid: z.string() }) })),
});

/** A Proxy in a list was there when the list was asked for. */
export const startRollCall = ({ api, namespace }: World): RollCall => {
  const seen = new Map<string, number>();
  const ended = new AbortController();
  const path = `/apis/crawl.example.com/v1alpha1/namespaces/${namespace}/proxies`;
  const loop = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const at = Date.now();
      const { items } = listSchema.parse((await callApi(api, path)).body);
      for (const { metadata } of items) seen.set(uidBase36(metadata.uid), at);
      await pause(CALL_EVERY_MS, ended.signal);
    }
  };
  const looping = loop();
  return {
    lastSeen: (uid) => seen.get(uid) ?? Number.NEGATIVE_INFINITY,
    async stop() {
      ended.abort();
      await looping;
    },
  };
};

export interface LedgerLimits {
  /** gc's minimum age, and how far its clock may be off. Milliseconds. */
  readonly minAgeMs: number;
  readonly skewMs: number;
}

const TAKEN = new Set([200, 0]);

/** Calls that change something and were carried out, as far as the stand-in did anything. */
const changes = ({ stack }: World): readonly ApiCall[] =>
  stack.cloud.compute.control
    .calls()
    .filter(
      ({ httpMethod, status, method }) =>
        httpMethod !== 'GET' && method !== 'operations.wait' && TAKEN.has(status),
    );

const trespasses = (world: World, calls: readonly ApiCall[]): readonly string[] => {
  const { id } = world.installation;
  return calls
    .filter(
      ({ caller = '', name = '' }) => caller.startsWith(`${id}/`) && !name.startsWith(machinePrefix(id)),
    )
    .map(({ caller = '', method, name = '' }) => `B2: ${caller} called ${method} for ${name}`);
};

const madeAt = (calls: readonly ApiCall[], { name, zone, at }: ApiCall): number =>
  calls.findLast(
    (call) => call.method === 'instances.insert' && call.name === name && call.zone === zone && call.at <= at,
  )?.at ?? Number.NEGATIVE_INFINITY;

const hasty = (
  world: World,
  roll: RollCall,
  { minAgeMs, skewMs }: LedgerLimits,
  calls: readonly ApiCall[],
): readonly string[] => {
  const { id } = world.installation;
  const ofGc = calls.filter(
    ({ caller, method }) => caller === callerOf(id, 'gc') && method.endsWith('.delete'),
  );
  return ofGc.flatMap((call) => {
    const { name = '', at, method } = call;
    const [uid = ''] = name.slice(machinePrefix(id).length).split('-');
    if (roll.lastSeen(uid) > at)
      return [`K6: gc of ${id} called ${method} for ${name}, whose Proxy was there`];
    const age = at - madeAt(calls, call);
    return age < minAgeMs - skewMs
      ? [`K6: gc of ${id} called ${method} for ${name} at the age of ${age} ms`]
      : [];
  });
};

/** What this installation did to machines and never should have. */
export const wrongCalls = (world: World, roll: RollCall, limits: LedgerLimits): readonly string[] => {
  const calls = changes(world);
  return [...trespasses(world, calls), ...hasty(world, roll, limits, calls)];
};

/** How many machines and disks gc told to go. */
export const gcDeletions = ({ stack, installation }: World): number =>
  stack.cloud.compute.control
    .calls({ caller: callerOf(installation.id, 'gc') })
    .filter(({ httpMethod, status }) => httpMethod === 'DELETE' && TAKEN.has(status)).length;
