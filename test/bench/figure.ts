/** What a benchmark reports: figures as counts, or as ratios to a limit that was measured in the same run. */

export interface Figure {
  /** The number of the goal; 0 for a figure that belongs to none. */
  readonly goal: number;
  readonly what: string;
  readonly value: number;
  /** The bound, and whether it is one from above or from below. */
  readonly target: { readonly atMost: number } | { readonly atLeast: number };
  readonly unit: string;
}

/** A line of `.local/bench/<name>.json`. */
export interface Reported {
  readonly goal: number;
  readonly what: string;
  readonly value: number;
  readonly target: string;
  readonly unit: string;
  readonly met: boolean;
}

const isMet = ({ value, target }: Figure): boolean =>
  'atMost' in target ? value <= target.atMost : value >= target.atLeast;

export const reported = (figure: Figure): Reported => {
  const { goal, what, value, target, unit } = figure;
  const bound = 'atMost' in target ? `<= ${target.atMost}` : `>= ${target.atLeast}`;
  return { goal, what, value, target: bound, unit, met: isMet(figure) };
};

const rounded = (value: number): string => (Number.isInteger(value) ? String(value) : value.toPrecision(3));

/** A table for people. */
export const table = (rows: readonly Reported[]): string => {
  const cells = rows.map((row) => [
    row.goal === 0 ? '' : String(row.goal),
    row.what,
    `${rounded(row.value)} ${row.unit}`.trim(),
    row.target,
    row.met ? 'met' : 'NOT MET',
  ]);
  const all = [['goal', 'what', 'value', 'target', ''], ...cells];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};

/** What a benchmark may use. `say` prints a line of progress. */
export interface BenchContext {
  readonly say: (line: string) => void;
  /** Printed, and repeatable: `BENCH_SEED` sets it. */
  readonly seed: number;
}

/** Each file in `suites/` exports one `bench`. It starts what it needs and leaves nothing running. */
export type Bench = (context: BenchContext) => Promise<readonly Figure[]>;
