/** What the handler of health needs, and the pools that its probes share. */

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Log } from '#shared/app/log.ts';
import type { Metrics } from '#shared/app/metrics.ts';
import type { Tracing } from '#shared/app/tracing.ts';
import type { CredentialStore } from '#shared/firestore/credentials.ts';
import type { RecordStore } from '#shared/firestore/records.ts';
import type { RoundStore } from '#shared/firestore/rounds.ts';
import type { ViewWriter } from '#shared/firestore/views.ts';
import type { Publisher } from '#shared/pubsub/publisher.ts';

import { makePace } from './pace.ts';
import { makePool, type Pool } from './pool.ts';
import type { Prober } from './probe/prober.ts';
import type { Target } from './probe/target.ts';
import type { Probing } from './probing.ts';

export interface Parts {
  readonly installation: string;
  readonly records: Pick<RecordStore, 'read' | 'write' | 'probed'>;
  readonly rounds: RoundStore;
  readonly views: ViewWriter;
  readonly credentials: Pick<CredentialStore, 'read'>;
  readonly publisher: Pick<Publisher, 'change'>;
  readonly prober: Prober;
  /** The echo, then what stands in for it where it refuses. */
  readonly targets: readonly Target[];
  /** How many parts the fleet is judged in. */
  readonly shards: number;
  /** How many probes of endpoints that answered last time may be in flight at once. */
  readonly probesAtOnce: number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracing?: Tracing;
}

export interface Pools {
  readonly live: Pool;
  readonly suspects: Pool;
  /** Endpoints that were just published or reported. */
  readonly early: Pool;
}

/** Dead proxies only wait: enough of them may be in flight that a tenth of a fleet can die at once. */
export const makePools = (probesAtOnce: number, clock: Clock): Pools => {
  const pace = makePace(clock);
  return {
    live: makePool(probesAtOnce, pace),
    suspects: makePool(16 * probesAtOnce, pace),
    early: makePool(4 * probesAtOnce, pace),
  };
};

export interface Running extends Parts {
  readonly probing: Probing;
  readonly pools: Pools;
}
