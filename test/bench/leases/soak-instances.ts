/** Instances of discovery that lose requests and replies, and die between a commit and its answer. */

import { systemClock } from '#shared/app/clock.ts';
import { SystemError, hasCode } from '#shared/app/errors.ts';
import type { HttpHandler, HttpReply } from '#shared/app/http.ts';
import type { LeaseStore } from '#shared/firestore/leases.ts';

import type { SoakOptions } from './soak-options.ts';

const CLOCKS_MS = [0, 120_000, -120_000];
const LOST_REPLY = 0.02;
const LOST_REQUEST = 0.01;
const KILLED = 0.003;

/** Calls that go to any instance, and not to the one that the caller has gone to before. */
const STRAYING = 0.03;

export interface Tally {
  kills: number;
  lostReplies: number;
}

/** An instance that loses replies, and dies between a commit and its answer. */
const makeInstance = (options: SoakOptions, tally: Tally, number: number) => {
  const { fleet, random } = options;
  const { promise: death, reject: die } = Promise.withResolvers<never>();
  death.catch(() => undefined);
  const state = { isDead: false };
  const wrap = (store: LeaseStore): LeaseStore => ({
    ...store,
    commit: async (...args) => {
      if (state.isDead) return death;
      const dice = random();
      if (dice < LOST_REQUEST) throw new SystemError('Transient', 'lost on the way');
      const version = await store.commit(...args);
      if (dice > 1 - KILLED) {
        state.isDead = true;
        tally.kills += 1;
        die(new SystemError('Transient', 'the instance was killed'));
        return death;
      }
      if (dice > 1 - KILLED - LOST_REPLY) {
        tally.lostReplies += 1;
        throw new SystemError('Transient', 'no reply');
      }
      return version;
    },
  });
  const offset = CLOCKS_MS[number % CLOCKS_MS.length] ?? 0;
  const clock = {
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
  };
  const { handler } = fleet.instance({ clock, wrap });
  return { state, call: (request: Parameters<HttpHandler>[0]) => Promise.race([handler(request), death]) };
};

const JSON_TYPE = { 'content-type': 'application/json' };

export const requestOf = (method: string, path: string, body?: object) => ({
  method,
  path,
  query: new URLSearchParams(),
  headers: body ? JSON_TYPE : {},
  body: body ? new TextEncoder().encode(JSON.stringify(body)) : new Uint8Array(),
});

/** `home`: of which number the caller is; `undefined` = no answer came. */
export type Call = (
  home: number,
  method: string,
  path: string,
  body?: object,
) => Promise<HttpReply | undefined>;

/** Each caller mostly keeps to one instance; a dead one is replaced, and its calls have no answer. */
export const makeCalls = (options: SoakOptions, tally: Tally): Call => {
  let made = 0;
  const make = () => makeInstance(options, tally, made++);
  const instances = Array.from({ length: options.instances }, make);
  return async (home, method, path, body) => {
    const strays = options.random() < STRAYING;
    const index = strays ? Math.floor(options.random() * instances.length) : home % instances.length;
    if (instances[index]?.state.isDead) instances[index] = make();
    try {
      return await instances[index]?.call(requestOf(method, path, body));
    } catch (error) {
      if (!hasCode(error, 'Transient', 'Conflict')) throw error;
      return undefined;
    }
  };
};
