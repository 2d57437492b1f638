import { metrics as registry, type Meter, type MeterProvider } from '@opentelemetry/api';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';

import { makeLog } from '#shared/app/log.ts';
import { instrument } from '#shared/app/instrumentation.ts';
import { logMetrics, noMetrics } from '#shared/app/metrics.ts';

afterEach(() => {
  registry.disable();
});

const line = z.object({
  metric: z.string(),
  labels: z.record(z.string(), z.string()),
  value: z.number(),
});

const logged = () => {
  const lines: string[] = [];
  const metrics = logMetrics(makeLog((text) => lines.push(text)));
  return { metrics, lines: () => lines.map((text) => line.parse(JSON.parse(text))) };
};

it('counts and values become log lines', () => {
  const { metrics, lines } = logged();
  metrics.count('leases', { code: 'x' });
  metrics.count('leases', {}, 3);
  metrics.record('age_ms', { topic: 't' }, [5, 7]);
  metrics.record('age_ms', {}, []);
  expect(lines()).toEqual([
    { metric: 'leases', labels: { code: 'x' }, value: 1 },
    { metric: 'leases', labels: {}, value: 3 },
    { metric: 'age_ms', labels: { topic: 't' }, value: 5 },
    { metric: 'age_ms', labels: { topic: 't' }, value: 7 },
  ]);
});

it('of 10,000 values 20 are written, which are spread as all of them', () => {
  const { metrics, lines } = logged();
  metrics.record(
    'probe_ms',
    {},
    Array.from({ length: 10_000 }, (_, index) => (index * 7919) % 10_000),
  );
  expect(lines().map(({ value }) => value)).toEqual(
    Array.from({ length: 20 }, (_, index) => index * 500 + 250),
  );
});

it('the same goes to a meter that is registered with OpenTelemetry, every value', () => {
  const seen: string[] = [];
  const noop = registry.getMeter('none');
  const own: Pick<Meter, 'createCounter' | 'createHistogram'> = {
    createCounter: (name) => ({
      add: (by, labels) => void seen.push(`${name} +${by} ${JSON.stringify(labels)}`),
    }),
    createHistogram: (name) => ({
      record: (value, labels) => void seen.push(`${name} ${value} ${JSON.stringify(labels)}`),
    }),
  };
  const meter: Meter = Object.assign(noop, own);
  const provider: MeterProvider = {
    getMeter: (name) => {
      seen.push(name);
      return meter;
    },
  };
  registry.setGlobalMeterProvider(provider);
  const { metrics } = instrument({
    name: 'test',
    projectId: 'p',
    clock: { monotonic: () => 0 },
    ids: { token: () => '' },
    write: () => undefined,
  });
  metrics.count('leases', { code: 'x' }, 2);
  metrics.record(
    'probe_ms',
    {},
    Array.from({ length: 50 }, (_, index) => index),
  );
  expect(seen.slice(0, 3)).toEqual(['egress-proxies', 'leases +2 {"code":"x"}', 'probe_ms 0 {}']);
  expect(seen).toHaveLength(52);
});

it('nobody has to ask whether there are any (S3)', () => {
  expect(noMetrics.count('x')).toBeUndefined();
  expect(noMetrics.record('x', {}, [1])).toBeUndefined();
});
