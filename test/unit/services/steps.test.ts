import { describe, expect, test } from 'vitest';

import { runStep } from '#test/setup/steps.ts';

const step = (command: string, ...args: string[]) => ({ name: 'sample', command, args });
const cwd = process.cwd();

describe('a step of the test run', () => {
  test.each([
    ['exits with 0', true, step('true')],
    ['exits with another code', false, step('false')],
    ['is killed', false, step('sh', '-c', 'kill -9 $$')],
    ['cannot be started', false, step('/nonexistent/program')],
  ])('that %s has passed: %j', async (_name, expected, sample) => {
    const result = await runStep(sample, cwd, new AbortController().signal);
    expect(result.passed).toBe(expected);
  });

  test('is stopped, and has not passed, when the run is terminated', async () => {
    const run = new AbortController();
    const running = runStep(step('sleep', '60'), cwd, run.signal);
    run.abort('SIGTERM');
    expect(await running).toMatchObject({ name: 'sample', passed: false });
  });
});
