/** Keeps exactly one live watch of one scope, for ever: list, watch from there, and list again whenever in doubt. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import { backoff, pause } from '#shared/app/wait.ts';
import type { ObjectSource } from '#shared/kubernetes/cluster.ts';

/** Milliseconds, but for the watch's own `timeoutSeconds`. */
export interface WatchTimes {
  /** The server ends a watch after this time, so that a quiet one proves itself alive. */
  readonly timeoutSeconds: number;
  /** Longest silence before a connection counts as dead; more than `timeoutSeconds`. */
  readonly silenceMs: number;
  /** An event may be lost without a trace: a complete list at least this often. */
  readonly relistMs: number;
  /** Least and greatest wait after a failure. */
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
}

/** With these a change is forwarded within a minute after a connection that died without a sign can be had again. */
export const WATCH_TIMES: WatchTimes = {
  timeoutSeconds: 40,
  silenceMs: 50_000,
  relistMs: 300_000,
  retryMinMs: 1000,
  retryMaxMs: 15_000,
};

/** What every object of the cluster has. */
interface Versioned {
  readonly metadata: { readonly resourceVersion: string };
}

export interface WatchSink<T> {
  /** Everything that the scope holds. */
  listed(scope: string, objects: readonly T[]): void;
  changed(object: T): void;
  deleted(object: T): void;
  /** The scope is in touch with the API server. */
  progress(scope: string): void;
  /** A list or a watch broke; the next one comes after a wait. */
  failed(scope: string, error: unknown): void;
}

export interface WatchLoopPorts<T> {
  readonly source: ObjectSource<T>;
  readonly sink: WatchSink<T>;
  readonly times: WatchTimes;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Where a watch may continue; undefined = only a list can tell. */
interface Position {
  readonly version: string;
  readonly listedAt: number;
}

const list = async <T>(ports: WatchLoopPorts<T>, scope: string, signal: AbortSignal): Promise<Position> => {
  const listedAt = ports.clock.monotonic();
  const { items, resourceVersion } = await ports.source.list(scope, signal);
  ports.sink.listed(scope, items);
  ports.sink.progress(scope);
  ports.metrics.count('watcher_lists');
  return { version: resourceVersion, listedAt };
};

/** One watch from `position` to its end. Returns where to continue, undefined when that version is no longer kept. */
const follow = async <T extends Versioned>(
  { source, sink, times }: WatchLoopPorts<T>,
  scope: string,
  position: Position,
  signal: AbortSignal,
): Promise<Position | undefined> => {
  let { version } = position;
  const { timeoutSeconds, silenceMs } = times;
  const options = { namespace: scope, resourceVersion: version, signal, timeoutSeconds, silenceMs };
  for await (const event of source.watch(options)) {
    sink.progress(scope);
    if (event.kind === 'expired') return undefined;
    if (event.kind === 'bookmark') version = event.resourceVersion;
    else {
      if (event.kind === 'deleted') sink.deleted(event.object);
      else sink.changed(event.object);
      version = event.object.metadata.resourceVersion;
    }
  }
  sink.progress(scope);
  return { ...position, version };
};

/** Runs until `signal` aborts; no error ends it. */
export const runWatchLoop = async <T extends Versioned>(
  ports: WatchLoopPorts<T>,
  scope: string,
  signal: AbortSignal,
): Promise<void> => {
  const { clock, times, ids, log, metrics } = ports;
  let position: Position | undefined;
  let failures = 0;
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    try {
      const overdue = position && startedAt - position.listedAt >= times.relistMs;
      const from = position && !overdue ? position : await list(ports, scope, signal);
      position = await follow(ports, scope, from, signal);
      failures = position ? 0 : failures + 1;
    } catch (error) {
      if (signal.aborted) return;
      position = undefined;
      failures += 1;
      ports.sink.failed(scope, error);
      metrics.count('watcher_watch_failures');
      log.error('the watch broke; it starts again', error, { scope, failures });
    }
    // A watch that ends as soon as it began is a failure too, as far as the API server's load is concerned.
    const early = clock.monotonic() - startedAt < times.retryMinMs;
    if (failures > 0 || early) {
      await pause(times.retryMinMs + backoff(failures, times.retryMinMs, times.retryMaxMs, ids), signal);
    }
  }
};
