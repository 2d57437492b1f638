/** How many tests passed and failed, from vitest's JSON reports. */

import { readFileSync } from 'node:fs';

import { z } from 'zod';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

export const NO_TESTS: Counts = { passed: 0, failed: 0 };

const reportSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  testResults: z.array(z.object({ status: z.string(), assertionResults: z.array(z.unknown()) })),
});

/** The counts in a report's text; a file that failed before its first test counts as one failure. */
export const parseCounts = (text: string): Counts => {
  const report = reportSchema.parse(JSON.parse(text));
  const broken = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  return { passed: report.numPassedTests, failed: report.numFailedTests + broken.length };
};

/** The counts of a report file; none when there is no readable one, since its run then ended before its tests. */
export const readCounts = (file: string): Counts => {
  try {
    return parseCounts(readFileSync(file, 'utf8'));
  } catch {
    return NO_TESTS;
  }
};

export const addCounts = (one: Counts, other: Counts): Counts => ({
  passed: one.passed + other.passed,
  failed: one.failed + other.failed,
});

export const closingLine = ({ passed, failed }: Counts): string => `${passed} passed, ${failed} failed`;
