import { describe, expect, test } from 'vitest';

import { addCounts, closingLine, NO_TESTS, parseCounts, readCounts } from '#test/setup/counts.ts';

const result = (status: string, tests: number) => ({
  status,
  assertionResults: Array.from({ length: tests }),
});

describe('the counts of a test run', () => {
  test('are those of the report', () => {
    const text = JSON.stringify({ numPassedTests: 7, numFailedTests: 2, testResults: [result('failed', 9)] });
    expect(parseCounts(text)).toEqual({ passed: 7, failed: 2 });
  });

  test('have a failure for a file that broke before its first test', () => {
    const text = JSON.stringify({ numPassedTests: 7, numFailedTests: 0, testResults: [result('failed', 0)] });
    expect(parseCounts(text)).toEqual({ passed: 7, failed: 1 });
  });

  test('are zero for a run that wrote no report', () => {
    expect(readCounts('/nonexistent/report.json')).toEqual(NO_TESTS);
  });

  test('add up over the projects, into the closing line', () => {
    const total = [
      { passed: 3, failed: 0 },
      { passed: 4, failed: 1 },
    ].reduce(addCounts, NO_TESTS);
    expect(closingLine(total)).toBe('7 passed, 1 failed');
  });
});
