/** Re-reads referenced Secrets in turn: they can be neither listed nor watched by this identity. */

import type { Clock } from '#shared/app/clock.ts';
import type { Log } from '#shared/app/log.ts';
import { pause } from '#shared/app/wait.ts';
import { MISSING_SECRET } from '#shared/domain/observed.ts';
import type { SecretReading } from '#shared/kubernetes/cluster.ts';

import type { SecretIndex, SecretName } from './secret-index.ts';

export interface SecretLoopPorts {
  readonly index: SecretIndex;
  readonly read: (secret: SecretName, signal: AbortSignal) => Promise<SecretReading>;
  /** Called with the UIDs of Proxies that refer to a Secret whose version is news. */
  readonly onNews: (uids: readonly string[]) => void;
  readonly clock: Clock;
  readonly log: Log;
  /** Each Secret is read about this often, in milliseconds. */
  readonly everyMs: number;
  /** Least time between two reads. */
  readonly gapMs: number;
}

/** What `status.observed.secretVersions` would hold; undefined when nothing can be said. */
const versionOf = (reading: SecretReading): string | undefined => {
  if (reading.kind === 'found') return reading.version;
  return reading.kind === 'missing' ? MISSING_SECRET : undefined;
};

const readOne = async (ports: SecretLoopPorts, secret: SecretName, signal: AbortSignal): Promise<void> => {
  const { index, clock, log } = ports;
  const startedAt = clock.monotonic();
  try {
    const reading = await ports.read(secret, signal);
    ports.onNews(index.record(secret, versionOf(reading), startedAt));
  } catch (error) {
    if (signal.aborted) return;
    // What was known stays known: an outage is no news.
    index.postpone(secret, startedAt);
    log.error('a Secret could not be read', error, { ...secret });
  }
};

/** Runs until `signal` aborts. */
export const runSecretLoop = async (ports: SecretLoopPorts, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    const now = ports.clock.monotonic();
    const next = ports.index.next();
    const dueIn = next ? next.readAt + ports.everyMs - now : ports.everyMs;
    if (next && dueIn <= 0) await readOne(ports, next, signal);
    // A reference that appears while this waits is read after at most a second.
    await pause(dueIn <= 0 ? ports.gapMs : Math.min(dueIn, 1000), signal);
  }
};
