/** A handler over one proxy in memory. */

import type { HttpHandler } from '#shared/app/http.ts';
import { makeLog } from '#shared/app/log.ts';
import { identified, requestScope } from '#shared/app/request-id.ts';
import { noMetrics } from '#shared/app/metrics.ts';

import { makeHandler } from '../../../functions/discovery/handler.ts';
import { gate, leaseDocument, UID } from '../lease/builders.ts';
import { fakeLeases } from './fakes.ts';

export const makeParts = () => {
  const fake = fakeLeases(UID, leaseDocument({ gate: gate({ maxLeases: 100_000 }) }));
  let tokens = 0;
  const lines: string[] = [];
  const scope = requestScope();
  const log = makeLog((line) => lines.push(line), {}, scope.fields);
  const ids = {
    token: () => {
      tokens += 1;
      return tokens.toString(16).padStart(32, '0');
    },
    uuid: () => 'made-here',
    fraction: () => 0,
  };
  const inner: HttpHandler = makeHandler({
    ...fake,
    credentials: { read: () => Promise.resolve(undefined) },
    publisher: { probe: () => Promise.resolve() },
    installation: 'test',
    namespaces: ['*'],
    ttl: { minSeconds: 10, maxSeconds: 86_400, defaultSeconds: 300 },
    ids,
    log,
    metrics: noMetrics,
  });
  const handler = identified(inner, { ids, log, scope, projectId: 'p' });
  return { fake, handler, log, lines };
};
