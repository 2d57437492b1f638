/** What is counted in the code, and what the module makes of it: metrics, alerts, runbooks. */

import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { z } from 'zod';

import type { PlannedResource } from './plan.ts';

/** A counter or a distribution of the code: which deployable writes it, and its labels. */
export interface Counter {
  readonly from: string;
  readonly labels: readonly string[];
}

const CALL = /\b(?:count|record)\(\s*(?:'(\w+)'|METRICS\.(\w+))\s*(?:,\s*\{([^}]*)\})?/g;
const TABLE = /METRICS = \{([^]*?)\} as const/;
const ENTRY = /(\w+): '(\w+)'/g;

/** Counters by name, read off the sources of one deployable, so that none is forgotten that no test happens to count. */
export const countersIn = (sources: readonly string[], from: string): ReadonlyMap<string, Counter> => {
  const text = sources.join('\n');
  const names = new Map(
    [...(TABLE.exec(text)?.[1] ?? '').matchAll(ENTRY)].map(([, key, name]) => [key, name]),
  );
  const found = new Map<string, Set<string>>();
  for (const [call, literal, key, labels = ''] of text.matchAll(CALL)) {
    const name = literal ?? names.get(key);
    if (name === undefined) throw new Error(`${from}: what does ${call} count?`);
    const known = found.get(name) ?? new Set();
    for (const label of labels.split(',').map((one) => one.split(':')[0]?.trim()))
      if (label) known.add(label);
    found.set(name, known);
  }
  return new Map([...found].map(([name, labels]) => [name, { from, labels: [...labels].toSorted() }]));
};

const sourcesUnder = async (folder: string): Promise<readonly string[]> => {
  const files = await readdir(folder, { recursive: true });
  const code = files.filter((file) => file.endsWith('.ts') && !file.endsWith('config.ts'));
  return Promise.all(code.map((file) => readFile(join(folder, file), 'utf8')));
};

/** All counters of these deployables. `functions` is the folder of their folders. */
export const countersOf = async (
  functions: string,
  deployables: readonly string[],
): Promise<ReadonlyMap<string, Counter>> => {
  const all = await Promise.all(
    deployables.map(async (name) => countersIn(await sourcesUnder(join(functions, name)), name)),
  );
  return new Map(all.flatMap((counters) => counters.entries().toArray()));
};

const metricSchema = z.object({
  name: z.string(),
  filter: z.string(),
  label_extractors: z.record(z.string(), z.string()).nullish(),
});

/** Whose logs a filter reads. */
const originOf = (filter: string, prefix: string): string =>
  new RegExp(`service_name="${prefix}(\\w+)"`).exec(filter)?.[1] ??
  /container_name="(\w+)"/.exec(filter)?.[1] ??
  'nobody';

/** Counters that no log metric reads, log metrics that read no counter, and ones that read it otherwise. */
export const counterFindings = (
  plan: readonly PlannedResource[],
  counters: ReadonlyMap<string, Counter>,
  prefix: string,
): readonly string[] => {
  const planned = new Map(
    plan
      .filter(({ address }) => address.startsWith('google_logging_metric.counter['))
      .map(({ change }) => {
        const { name, filter, label_extractors: extractors } = metricSchema.parse(change.after);
        const counter = /jsonPayload\.metric="(\w+)"/.exec(filter)?.[1] ?? name;
        const labels = Object.keys(extractors ?? {}).toSorted();
        return [counter, { from: originOf(filter, prefix), labels, name }] as const;
      }),
  );
  const names = new Set([...counters.keys(), ...planned.keys()]);
  return [...names].flatMap((name) => {
    const [wanted, given] = [counters.get(name), planned.get(name)];
    if (!given) return [`${name} is counted, but there is no log metric of it`];
    if (!wanted) return [`there is a log metric of ${name}, which nobody counts`];
    if (given.name !== `${prefix}${name}`) return [`the log metric of ${name} is called ${given.name}`];
    const same = given.from === wanted.from && given.labels.join() === wanted.labels.join();
    return same
      ? []
      : [`${name}: ${JSON.stringify(wanted)} in the code, ${JSON.stringify(given)} in the module`];
  });
};

const ALERT = /^google_monitoring_alert_policy\.main\["(.+)"\]$/;
const documented = z.object({ documentation: z.tuple([z.object({ content: z.string() })]) });

/** Alerts without a runbook that says what to do, and runbooks without an alert. `runbooks` are texts by name. */
export const runbookFindings = (
  plan: readonly PlannedResource[],
  runbooks: ReadonlyMap<string, string>,
): readonly string[] => {
  const alerts = new Map(
    plan.flatMap(({ address, change }) => {
      const name = ALERT.exec(address)?.[1];
      return name === undefined ? [] : [[name, documented.safeParse(change.after).data] as const];
    }),
  );
  const unnamed = plan
    .filter(({ type, address }) => type === 'google_monitoring_alert_policy' && !ALERT.test(address))
    .map(({ address }) => `${address} has no runbook`);
  const names = new Set([...alerts.keys(), ...runbooks.keys()]);
  return unnamed.concat(
    [...names].flatMap((name) => {
      const text = runbooks.get(name);
      if (text === undefined) return [`the alert ${name} has no runbook`];
      if (!alerts.has(name)) return [`the runbook ${name} has no alert`];
      if (!/^1\. /m.test(text)) return [`the runbook ${name} has no step`];
      return alerts.get(name)?.documentation[0].content === text
        ? []
        : [`the alert ${name} does not show its runbook`];
    }),
  );
};

/** Texts by name, without the ending. */
export const readRunbooks = async (folder: string): Promise<ReadonlyMap<string, string>> =>
  new Map(
    await Promise.all(
      (await readdir(folder))
        .filter((file) => file.endsWith('.md'))
        .map(
          async (file) => [file.slice(0, -'.md'.length), await readFile(join(folder, file), 'utf8')] as const,
        ),
    ),
  );
