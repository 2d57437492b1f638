/** Goal 12: how much later than a function that does nothing the functions answer, and what their bundles weigh. */

import { readFile } from 'node:fs/promises';

import { z } from 'zod';

import { SIZES, buildAll } from '#test/tools/build.ts';

import { startOnce, type Start, type Subject } from '../coldstart/instance.ts';
import { startSubjects } from '../coldstart/subjects.ts';
import type { Bench, Figure } from '../figure.ts';

const ROUNDS = 7;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const NAMES = ['empty', 'discovery', 'provision', 'gc', 'uncompiled'] as const;
type Name = (typeof NAMES)[number];

/** One after the other and in turn, so that whatever else the machine does meets all of them alike. */
const measure = async (
  subjects: Readonly<Record<Name, Subject>>,
  say: (line: string) => void,
): Promise<Readonly<Record<Name, readonly Start[]>>> => {
  const starts: Record<Name, Start[]> = { empty: [], discovery: [], provision: [], gc: [], uncompiled: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const name of NAMES) {
      const start = await startOnce(subjects[name]);
      // The first round reads everything from disk.
      if (round > 0) starts[name].push(start);
    }
    say(`round ${round} of ${ROUNDS}`);
  }
  return starts;
};

const sizesSchema = z.record(
  z.string(),
  z.object({ startFiles: z.number(), startBytes: z.number(), bytes: z.number() }),
);

const weigh = async (name: Name, limit: number): Promise<readonly Figure[]> => {
  const sizes = sizesSchema.parse(JSON.parse(await readFile(SIZES, 'utf8')))[name];
  if (!sizes) throw new Error(`${name} was not built`);
  return [
    {
      goal: 12,
      what: `${name}: files read at its start`,
      value: sizes.startFiles,
      target: { atMost: 8 },
      unit: 'files',
    },
    {
      goal: 12,
      what: `${name}: read at its start`,
      value: sizes.startBytes / 1e6,
      target: { atMost: 0.33 },
      unit: 'MB',
    },
    { goal: 12, what: `${name}: bundle`, value: sizes.bytes / 1e6, target: { atMost: limit }, unit: 'MB' },
  ];
};

export const bench: Bench = async ({ say }) => {
  await buildAll();
  const subjects = await startSubjects();
  try {
    const starts = await measure(subjects, say);
    const of = (name: Name, what: keyof Start): number => median(starts[name].map((start) => start[what]));
    for (const name of NAMES)
      say(
        `${name}: ${Math.round(of(name, 'served'))} ms to serve, ${Math.round(of(name, 'answered'))} ms to its answer`,
      );
    const ratio = (name: Name, what: keyof Start, base: keyof Start, most: number, to: string): Figure => ({
      goal: 12,
      what: `${name} / empty function: ${to}`,
      value: of(name, what) / of('empty', base),
      target: { atMost: most },
      unit: 'x',
    });
    return [
      ratio('discovery', 'served', 'served', 1.5, 'first 200'),
      ratio('discovery', 'answered', 'served', 2, 'first answer from Firestore'),
      ratio('discovery', 'memory', 'memory', 1.35, 'memory'),
      ratio('provision', 'served', 'served', 1.6, 'first 200'),
      ratio('provision', 'memory', 'memory', 1.35, 'memory'),
      ratio('gc', 'served', 'served', 1.6, 'first 200'),
      ratio('gc', 'answered', 'served', 1.8, 'first call of Compute Engine'),
      ...(await weigh('discovery', 2.5)),
      ...(await weigh('provision', 3.2)),
    ];
  } finally {
    await subjects.stop();
  }
};
