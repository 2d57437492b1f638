/** Benchmarks in parts, of which `BENCH_PARTS` names those that are measured. */

import type { BenchContext, Figure } from './figure.ts';

/** `needs` = what all parts share. */
export type Part<Needs> = (needs: Needs, context: BenchContext) => Promise<readonly Figure[]>;

export type Parts<Needs> = Readonly<Record<string, Part<Needs>>>;

/** Names in the order in which they are measured; all when `asked` is absent. Throws for one that is not known. */
export const partsAskedFor = (
  known: readonly string[],
  asked: string | undefined = process.env['BENCH_PARTS'],
): readonly string[] => {
  const names = asked?.split(',') ?? known;
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return known.filter((name) => names.includes(name));
  throw new Error(`BENCH_PARTS: no part ${unknown.join(', ')}; there are: ${known.join(', ')}`);
};

const measured = async <Needs>(
  name: string,
  part: Part<Needs>,
  needs: Needs,
  context: BenchContext,
): Promise<readonly Figure[]> => {
  context.say(`--- ${name}`);
  try {
    return await part(needs, context);
  } catch (error) {
    process.exitCode = 1;
    context.say(`  failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return [{ goal: 0, what: `${name}: not measured`, value: 1, target: { atMost: 0 }, unit: '' }];
  }
};

/** Measures the parts that are asked for; what one cannot measure hides no other. */
export const measureParts = async <Needs>(
  parts: Parts<Needs>,
  needs: Needs,
  context: BenchContext,
): Promise<readonly Figure[]> => {
  const asked = partsAskedFor(Object.keys(parts));
  const figures: Figure[] = [];
  for (const [name, part] of Object.entries(parts))
    if (asked.includes(name)) figures.push(...(await measured(name, part, needs, context)));
  return figures;
};
