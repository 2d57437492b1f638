/** Carries decisions out: one publish at a time per Proxy, each from the state that is current when its turn comes. */

import { pause } from '#shared/app/wait.ts';

import type { ProxyRef } from '#shared/domain/proxy.ts';

import { decide, type Decision } from './decide.ts';
import { makeDelivery, type DeliveryPorts } from './delivery.ts';
import type { Entry, Known } from './known.ts';

export interface NudgerPorts extends DeliveryPorts {
  readonly known: Known;
  readonly installation: string;
  /** Called after each repetition of a nudge, with how many there were in a row. */
  readonly onUnanswered: (ref: ProxyRef, repetitions: number) => void;
}

const PARALLEL = 64;
const TICK_MS = 1000;

export type Nudger = ReturnType<typeof makeNudger>;

const judge = ({ known, installation, clock }: NudgerPorts, entry: Entry): Decision => {
  const secretVersions = known.secrets.versionsFor(entry.view);
  const decision = decide({ ...entry, installation, secretVersions, now: clock.monotonic() });
  // What is covered now is forgotten, so that its return is news. How a Proxy went is judged by what it was told before.
  const closed = entry.gone ? [] : [...entry.forwarded.keys()].filter((key) => !decision.open.includes(key));
  for (const key of closed) entry.forwarded.delete(key);
  return decision;
};

/** Runs work for keys, at most `PARALLEL` at a time, never two for one key. */
const makeQueue = (work: (key: string) => Promise<void>) => {
  const waiting = new Set<string>();
  const running = new Map<string, Promise<void>>();
  let stopped = false;

  const pump = (): void => {
    for (const key of waiting) {
      if (stopped || running.size >= PARALLEL) return;
      if (running.has(key)) continue;
      waiting.delete(key);
      const done = work(key).finally(() => {
        running.delete(key);
        pump();
      });
      running.set(key, done);
    }
  };

  return {
    add(key: string): void {
      waiting.add(key);
      pump();
    },
    /** Starts nothing more; resolves when what was running has ended. */
    async stop(): Promise<void> {
      stopped = true;
      await Promise.allSettled(running.values());
    },
    get size(): number {
      return waiting.size + running.size;
    },
  };
};

export const makeNudger = (ports: NudgerPorts) => {
  const { known, clock } = ports;
  const delivery = makeDelivery(ports);
  /** When (ms) to look at a Proxy again. A settled one is not here. */
  const due = new Map<string, number>();

  const settle = (uid: string, { gone }: Entry): void => {
    due.delete(uid);
    delivery.forget(uid);
    if (gone) known.forget(uid);
  };

  const nudge = async (
    entry: Entry,
    { open, reason }: Extract<Decision, { kind: 'nudge' }>,
  ): Promise<void> => {
    // The same once more goes on in the trace that it began.
    const again = open.every((key) => entry.forwarded.has(key));
    const parent = again ? entry.traceparent : undefined;
    const { stored, traceparent } = await delivery.deliver({ ref: entry.view.ref, reason, parent });
    if (!stored) return;
    entry.traceparent = traceparent;
    entry.unanswered = again ? (entry.unanswered ?? 0) + 1 : 0;
    if (again) ports.onUnanswered(entry.view.ref, entry.unanswered);
    for (const key of open) entry.forwarded.set(key, clock.monotonic());
  };

  const act = async (uid: string, entry: Entry, decision: Decision): Promise<void> => {
    if (decision.kind === 'settled') return settle(uid, entry);
    const at = decision.kind === 'wait' ? decision.until : (delivery.retryAt(uid) ?? 0);
    if (at > clock.monotonic()) {
      due.set(uid, at);
      return undefined;
    }
    if (decision.kind === 'nudge') await nudge(entry, decision);
    return look(uid);
  };

  /** One look, and whatever follows from it at once: the Proxy may have changed during a publish. */
  const look = async (uid: string): Promise<void> => {
    const entry = known.get(uid);
    if (entry) await act(uid, entry, judge(ports, entry));
  };

  const queue = makeQueue(look);

  return {
    /** Has one Proxy looked at as soon as possible. */
    evaluate: (uid: string): void => queue.add(uid),

    /** Looks at Proxies whose time has come, until `signal` aborts. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const now = clock.monotonic();
        for (const [uid, at] of due) if (at <= now) queue.add(uid);
        await pause(TICK_MS, signal);
      }
    },

    stop: () => queue.stop(),

    /** Proxies that are not settled. */
    get pending(): number {
      return queue.size + due.size;
    },
  };
};
