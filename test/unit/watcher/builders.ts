/** Proxies as the watcher sees them, and ports with memory and faults. */

import type { Clock } from '#shared/app/clock.ts';
import { SystemError } from '#shared/app/errors.ts';
import type { Ids } from '#shared/app/ids.ts';
import { makeLog, type Log } from '#shared/app/log.ts';
import type { ChangeMessage } from '#shared/domain/message.ts';
import { FINALIZER } from '#shared/domain/proxy.ts';

import type { Observation, ProxyView } from '../../../functions/watcher/decide.ts';

export const NOW = Date.UTC(2026, 0, 1);
export const INSTALLATION = 'prod';

export const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** A Proxy at generation 1 that provision has dealt with. */
export const aView = (n = 1, change: Partial<ProxyView> = {}): ProxyView => ({
  ref: { namespace: 'crawlers', name: `p-${n}`, uid: uidOf(n) },
  generation: 1,
  labelsHash: 'aa',
  deleting: false,
  finalizers: [FINALIZER],
  installation: INSTALLATION,
  secrets: [],
  observed: { generation: 1, labelsHash: 'aa', secretVersions: {} },
  ...change,
});

/** As it is right after `kubectl apply`. */
export const aNewView = (n = 1, change: Partial<ProxyView> = {}): ProxyView => {
  const { observed: _observed, installation: _installation, ...view } = aView(n, { finalizers: [] });
  return { ...view, ...change };
};

export const anObservation = (change: Partial<Observation> = {}): Observation => ({
  view: aView(),
  gone: false,
  installation: INSTALLATION,
  secretVersions: {},
  forwarded: new Map(),
  now: NOW,
  ...change,
});

export const silentLog: Log = makeLog(() => undefined);

export interface SteppedClock extends Clock {
  step(ms: number): void;
  /** Moves the wall clock only. */
  setBack(ms: number): void;
}

export const steppedClock = (start = NOW): SteppedClock => {
  let time = start;
  let behind = 0;
  return {
    now: () => time - behind,
    monotonic: () => time,
    setBack(ms) {
      behind += ms;
    },
    step(ms) {
      time += ms;
    },
  };
};

export const middlingIds: Ids = { token: () => '0', uuid: () => uidOf(0), fraction: () => 0.5 };

/** Keeps what was published; refuses UIDs that were told to fail, and holds what comes while it is held. */
export const fakeTopic = () => {
  const published: ChangeMessage[] = [];
  const failing = new Set<string>();
  let attempts = 0;
  let held = Promise.withResolvers<void>();
  held.resolve();
  return {
    published,
    failing,
    attempts: () => attempts,
    hold: (): (() => void) => {
      held = Promise.withResolvers<void>();
      return held.resolve;
    },
    async change(message: ChangeMessage): Promise<void> {
      attempts += 1;
      await held.promise;
      if (failing.has(message.uid)) throw new SystemError('Transient', 'the topic does not answer');
      published.push(message);
    },
  };
};
