/** Commands that run one after the other on this terminal. */

import { spawn } from 'node:child_process';

export interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

export interface StepResult {
  readonly name: string;
  readonly passed: boolean;
  readonly ms: number;
}

/** Aborts on Ctrl-C and SIGTERM. */
export const interruptible = (): AbortSignal => {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort(signal));
  return interrupted.signal;
};

const INTERRUPTED = -1;

/** The exit code of a command whose output goes to this terminal. */
const exitCode = (step: Step, cwd: string, signal: AbortSignal): Promise<number> =>
  new Promise((resolve) => {
    const child = spawn(step.command, step.args, { cwd, stdio: 'inherit' });
    // Ctrl-C reaches the whole terminal's group, and a second signal would cut the child's own tidying up short.
    const stop = (): boolean => signal.reason === 'SIGTERM' && child.kill('SIGTERM');
    signal.addEventListener('abort', stop, { once: true });
    child.once('error', (error) => {
      console.error(`${step.command} could not be run: ${error.message}`);
      resolve(INTERRUPTED);
    });
    child.once('exit', (code) => {
      signal.removeEventListener('abort', stop);
      resolve(code ?? INTERRUPTED);
    });
  });

/** Runs a step to its end; an interrupted one has not passed. */
export const runStep = async (step: Step, cwd: string, signal: AbortSignal): Promise<StepResult> => {
  const start = performance.now();
  const code = await exitCode(step, cwd, signal);
  return { name: step.name, passed: code === 0 && !signal.aborted, ms: performance.now() - start };
};
