/** The watcher: what the watches and the Secrets say goes into memory, and each Proxy that changed there is looked at. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { Tracing } from '#shared/app/tracing.ts';
import { pause } from '#shared/app/wait.ts';
import type { Cluster, ProxyObject, WatchOptions } from '#shared/kubernetes/cluster.ts';
import type { Publisher } from '#shared/pubsub/publisher.ts';

import type { ProxyView } from './decide.ts';
import { makeKnown, type Known } from './known.ts';
import { livenessHandler, makeLiveness } from './liveness.ts';
import { makeNudger, type Nudger } from './nudger.ts';
import { makePodSink } from './pods.ts';
import { runSecretLoop, type SecretLoopPorts } from './secret-loop.ts';
import { viewOf } from './view.ts';
import { makeOwnerWarnings, makeUnansweredWarnings, makeWarnings } from './warnings.ts';
import { WATCH_TIMES, runWatchLoop, type WatchSink, type WatchTimes } from './watch-loop.ts';

export interface WatcherPorts {
  readonly cluster: Pick<
    Cluster,
    'listNamespace' | 'watchProxies' | 'machinePods' | 'readSecret' | 'recordEvent'
  >;
  readonly publisher: Pick<Publisher, 'change'>;
  readonly installation: string;
  /** `['*']` = all of the cluster, by one watch; else one watch each. */
  readonly namespaces: readonly string[];
  /** True where Pods are machines: needs the rights of that component. */
  readonly pods: boolean;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracing?: Tracing;
  /** Default: `WATCH_TIMES`, with longer waits after failures where there are many namespaces. */
  readonly times?: WatchTimes;
  /** How often each Secret is read, in milliseconds; default 30,000. */
  readonly secretsEveryMs?: number;
}

/** Ten reads of Secrets per second at most, and far fewer while they fail. */
const SECRET_TIMES = { gapMs: 100, retryMinMs: 2000, retryMaxMs: 30_000 };
/** After an outage all scopes together ask about once a second, and each at least every twenty seconds or so. */
const timesFor = (scopes: number): WatchTimes => {
  const retryMinMs = WATCH_TIMES.retryMinMs * Math.min(scopes, 20);
  return { ...WATCH_TIMES, retryMinMs, retryMaxMs: Math.max(WATCH_TIMES.retryMaxMs, retryMinMs) };
};

/** Every attempt ends within a minute or two, however it ends; and to wait for an API server needs no new process. */
const LIVENESS_LIMITS = { idleMs: 300_000, unansweredMs: 1_800_000 };

const makeSink = (
  known: Known,
  nudger: Nudger,
  warnOfOwner: (view: ProxyView) => void,
  contact: Pick<WatchSink<ProxyObject>, 'progress' | 'failed'>,
): WatchSink<ProxyObject> => {
  const changed = (proxy: ProxyObject): void => {
    const view = viewOf(proxy);
    known.seen(view);
    warnOfOwner(view);
    nudger.evaluate(view.ref.uid);
  };
  return {
    changed,
    listed(scope, proxies) {
      for (const proxy of proxies) changed(proxy);
      const listed = new Set(proxies.map(({ metadata }) => metadata.uid));
      for (const view of known.missingFrom(scope, listed)) {
        known.vanished(view);
        nudger.evaluate(view.ref.uid);
      }
    },
    deleted(proxy) {
      known.vanished(viewOf(proxy));
      nudger.evaluate(proxy.metadata.uid);
    },
    ...contact,
  };
};

const secretLoopOf = (ports: WatcherPorts, known: Known, nudger: Nudger): SecretLoopPorts => ({
  index: known.secrets,
  read: ({ namespace, name }, signal) => ports.cluster.readSecret(namespace, name, signal),
  onNews: (uids) => uids.forEach((uid) => nudger.evaluate(uid)),
  clock: ports.clock,
  ids: ports.ids,
  log: ports.log,
  everyMs: ports.secretsEveryMs ?? 30_000,
  ...SECRET_TIMES,
});

/** `run` ends some moments after its signal aborts, with nothing in flight; no error ends it before. */
export const makeWatcher = (ports: WatcherPorts) => {
  const { cluster, clock } = ports;
  const scopes = [...new Set(ports.namespaces)];
  const known = makeKnown();
  const inTouch = new Set<string>();
  const liveness = makeLiveness(scopes, LIVENESS_LIMITS, clock);
  const nudger = makeNudger({
    ...ports,
    known,
    publish: (message) => ports.publisher.change(message),
    onFailure: makeWarnings(cluster, clock),
    onUnanswered: makeUnansweredWarnings(cluster, ports.installation, clock),
  });
  const loop = {
    ...ports,
    source: {
      list: (scope: string, signal?: AbortSignal) => cluster.listNamespace(scope, signal),
      watch: (options: WatchOptions) => cluster.watchProxies(options),
    },
    sink: makeSink(known, nudger, makeOwnerWarnings(cluster, ports.installation, clock), {
      ...liveness,
      progress(scope) {
        inTouch.add(scope);
        liveness.progress(scope);
      },
    }),
    times: ports.times ?? timesFor(scopes.length),
  };
  const podLoop = {
    ...loop,
    source: cluster.machinePods(ports.installation),
    sink: makePodSink({
      onNews: ({ uid }, version) => {
        if (known.machineChanged(uid, version)) nudger.evaluate(uid);
      },
    }),
  };
  const runPodLoop = async (scope: string, signal: AbortSignal): Promise<void> => {
    // Only what is known can be nudged: Proxies first.
    while (!signal.aborted && !inTouch.has(scope)) await pause(100, signal);
    await runWatchLoop(podLoop, scope, signal);
  };
  const secrets = secretLoopOf(ports, known, nudger);
  return {
    http: livenessHandler(liveness),
    /** Proxies and Secrets that are remembered, and Proxies that are not settled. */
    sizes: () => ({ proxies: known.size, secrets: known.secrets.size, pending: nudger.pending }),
    async run(signal: AbortSignal): Promise<void> {
      await Promise.all([
        ...scopes.map((scope) => runWatchLoop(loop, scope, signal)),
        ...(ports.pods ? scopes : []).map((scope) => runPodLoop(scope, signal)),
        runSecretLoop(secrets, signal),
        nudger.run(signal),
      ]);
      await nudger.stop();
    },
  };
};
