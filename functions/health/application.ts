/** Everything that a round needs, loaded by the first one. */

import type { SecureContext } from 'node:tls';

import type { Clock } from '#shared/app/clock.ts';
import type { Ids } from '#shared/app/ids.ts';
import type { Instrumentation } from '#shared/app/instrumentation.ts';
import type { Application } from '#shared/app/on-demand.ts';
import { lazyPublisher } from '#shared/pubsub/lazy-publisher.ts';

import { settingsOf, type Config } from './config.ts';
import { makeHandler } from './handler.ts';
import { fetchGoogleIdToken, makeIdTokens } from './probe/id-tokens.ts';
import { makeProber } from './probe/prober.ts';
import { openStores } from './wiring.ts';

export interface Tools extends Instrumentation {
  readonly clock: Clock;
  readonly ids: Ids;
}

export interface ApplicationOptions {
  readonly config: Config;
  readonly tools: Tools;
  /** Whom probes trust. */
  readonly trust: SecureContext;
  /** Called when calls of one database hang in a row. */
  readonly onStuck: () => void;
}

export const openApplication = ({ config, tools, trust, onStuck }: ApplicationOptions): Application => {
  const prober = makeProber(trust, tools.ids, makeIdTokens(fetchGoogleIdToken, tools.clock));
  const publisher = lazyPublisher({
    projectId: config.GOOGLE_CLOUD_PROJECT,
    changesTopic: config.PROXY_CHANGES_TOPIC,
    traceparent: tools.tracing.traceparent,
  });
  const { stores, close } = openStores(config, onStuck);
  return {
    handler: makeHandler({ ...tools, ...settingsOf(config), ...stores, prober, publisher }),
    close: () => Promise.allSettled([close(), publisher.close()]),
  };
};
