import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import {
  counterFindings,
  countersIn,
  countersOf,
  readRunbooks,
  runbookFindings,
} from '#test/terraform/observability.ts';
import type { PlannedResource } from '#test/terraform/plan.ts';
import { DEPLOYABLES } from '#test/tools/build.ts';

const resource = (address: string, after: Record<string, unknown>): PlannedResource => ({
  address,
  type: address.replace(/\..*/, ''),
  change: { actions: ['create'], after, after_unknown: {} },
});

const metric = (name: string, from: string, ...labels: string[]) =>
  resource(`google_logging_metric.counter["${name}"]`, {
    name: `prod-${name}`,
    filter: `resource.labels.service_name="prod-${from}" AND jsonPayload.metric="${name}"`,
    label_extractors: Object.fromEntries(
      labels.map((label) => [label, `EXTRACT(jsonPayload.labels.${label})`]),
    ),
  });

const alert = (name: string, content: string) =>
  resource(`google_monitoring_alert_policy.main["${name}"]`, { documentation: [{ content }] });

describe('counters', () => {
  test('are read off the code, by name and by table, with their labels', () => {
    const source = `
      const METRICS = { rounds: 'health_rounds' } as const;
      metrics.count('leases', { code, why: reason }, 2);
      metrics.count(METRICS.rounds, {}, 3);
    `;
    expect([...countersIn([source], 'health')]).toEqual([
      ['leases', { from: 'health', labels: ['code', 'why'] }],
      ['health_rounds', { from: 'health', labels: [] }],
    ]);
    expect(() => countersIn(['metrics.count(METRICS.other)'], 'gc')).toThrow('what does');
  });

  test('of the product are found in all deployables that count', async () => {
    const counters = await countersOf(join(import.meta.dirname, '../../../functions'), DEPLOYABLES);
    expect(new Set([...counters.values()].map(({ from }) => from))).toEqual(
      new Set(['watcher', 'provision', 'health', 'discovery', 'gc']),
    );
    expect(counters.get('health_verdicts')).toEqual({ from: 'health', labels: ['outcome', 'to'] });
  });

  test('that no metric reads, metrics of nothing, and other labels or owners are found', () => {
    const counters = new Map([['a', { from: 'gc', labels: ['x'] }]]);
    expect(counterFindings([metric('a', 'gc', 'x')], counters, 'prod-')).toEqual([]);
    expect(counterFindings([], counters, 'prod-')).toHaveLength(1);
    expect(counterFindings([metric('a', 'gc', 'x'), metric('b', 'gc')], counters, 'prod-')).toHaveLength(1);
    expect(counterFindings([metric('a', 'gc')], counters, 'prod-')).toHaveLength(1);
    expect(counterFindings([metric('a', 'health', 'x')], counters, 'prod-')).toHaveLength(1);
    expect(counterFindings([metric('a', 'gc', 'x')], counters, 'other-')).toHaveLength(1);
  });
});

describe('alerts', () => {
  const text = '# What is wrong\n\n1. Look.\n';

  test('without a runbook, runbooks without an alert or a step, and alerts that do not show theirs are found', () => {
    const books = new Map([['silent', text]]);
    expect(runbookFindings([alert('silent', text)], books)).toEqual([]);
    expect(runbookFindings([alert('silent', text), alert('other', text)], books)).toHaveLength(1);
    expect(runbookFindings([], books)).toHaveLength(1);
    expect(runbookFindings([alert('silent', 'see elsewhere')], books)).toHaveLength(1);
    expect(runbookFindings([alert('silent', 'x')], new Map([['silent', 'x']]))).toHaveLength(1);
    const stranger = resource('google_monitoring_alert_policy.stranger', {});
    expect(runbookFindings([alert('silent', text), stranger], books)).toHaveLength(1);
  });

  test('have runbooks that fit into Cloud Monitoring', async () => {
    const books = await readRunbooks(join(import.meta.dirname, '../../../terraform/runbooks'));
    expect(books.size).toBeGreaterThan(10);
    expect([...books].filter(([, content]) => content.length > 8192)).toEqual([]);
  });

  test('by name in a filter are raised by the code under that name', async () => {
    const root = join(import.meta.dirname, '../../..');
    const module = await readFile(join(root, 'terraform/observability.tf'), 'utf8');
    const filters = [...module.matchAll(/\b(?:jsonPayload\.|labels\.)alert ?= ?(?:one_of\()?[^\n]*/g)].join(
      '',
    );
    const named = [...filters.matchAll(/\\"([A-Z]\w+)\\"/g)].map(([, name]) => name);
    const code = await Promise.all(
      DEPLOYABLES.map(async (name) => {
        const folder = join(root, 'functions', name);
        const files = (await readdir(folder)).filter((file) => file.endsWith('.ts'));
        return (await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))).join('');
      }),
    );
    const raised = new Set([...code.join('').matchAll(/'([A-Z]\w+)'/g)].map(([, name]) => name));
    expect(named).toContain('FirestoreStuck');
    expect(named.filter((name) => !raised.has(name))).toEqual([]);
  });
});
