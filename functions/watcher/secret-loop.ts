/** Re-reads referenced Secrets in turn: they can be neither listed nor watched by this identity. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import { backoff, pause } from '#shared/app/wait.ts';
import { MISSING_SECRET } from '#shared/domain/observed.ts';
import type { SecretReading } from '#shared/kubernetes/cluster.ts';

import type { SecretIndex, SecretName } from './secret-index.ts';

export interface SecretLoopPorts {
  readonly index: SecretIndex;
  readonly read: (secret: SecretName, signal: AbortSignal) => Promise<SecretReading>;
  /** Called with the UIDs of Proxies that refer to a Secret whose version is news. */
  readonly onNews: (uids: readonly string[]) => void;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Each Secret is read about this often, in milliseconds. */
  readonly everyMs: number;
  /** Least time between two reads. */
  readonly gapMs: number;
  /** Least and greatest wait after a read that got no answer. */
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
}

/** What `status.observed.secretVersions` would hold; undefined when nothing can be said. */
const versionOf = (reading: SecretReading): string | undefined => {
  if (reading.kind === 'found') return reading.version;
  return reading.kind === 'missing' ? MISSING_SECRET : undefined;
};

/** True when the API server answered. */
const readOne = async (ports: SecretLoopPorts, secret: SecretName, signal: AbortSignal): Promise<boolean> => {
  const { index, clock, log } = ports;
  const startedAt = clock.monotonic();
  try {
    const reading = await ports.read(secret, signal);
    ports.onNews(index.record(secret, versionOf(reading), startedAt));
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    // What was known stays known: an outage is no news.
    index.postpone(secret, startedAt);
    log.error('a Secret could not be read', error, { ...secret });
    return false;
  }
};

/** Runs until `signal` aborts. An API server in trouble is asked less and less often. */
export const runSecretLoop = async (ports: SecretLoopPorts, signal: AbortSignal): Promise<void> => {
  const { clock, index, ids, everyMs, gapMs, retryMinMs, retryMaxMs } = ports;
  let failures = 0;
  while (!signal.aborted) {
    const next = index.next();
    const dueIn = next ? next.readAt + everyMs - clock.monotonic() : everyMs;
    if (next && dueIn <= 0) {
      failures = (await readOne(ports, next, signal)) ? 0 : failures + 1;
      const wait = failures === 0 ? gapMs : retryMinMs + backoff(failures, retryMinMs, retryMaxMs, ids);
      await pause(wait, signal);
    } else {
      // A reference that appears while this waits is read after at most a second.
      await pause(Math.min(dueIn, 1000), signal);
    }
  }
};
