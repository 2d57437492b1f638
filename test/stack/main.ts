/** `npm start`: the whole system on this machine, until Ctrl-C. */

import { join } from 'node:path';

import { endProcesses } from '#test/services/process.ts';

import { claimEnvFile } from './env-file.ts';
import { USAGE, parseOptions, type StartOptions } from './options.ts';
import { makeProgress, type Progress } from './progress.ts';
import { startStack, type Stack } from './stack.ts';
import { runTour } from './tour.ts';

const ROOT = join(import.meta.dirname, '../..');

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const greeting = (envFile: string): string => `
The stack is up. In another terminal, from this folder:

  set -a; . ${envFile}; set +a
  kubectl get proxies -A
  curl -s "$DISCOVERY_URL/v1/proxies"

Ctrl-C stops everything.`;

class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Aborts at the first signal. A terminal sends Ctrl-C to the whole group and npm passes it on: later ones say nothing new. */
const interruption = (): AbortSignal => {
  const asked = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => asked.abort(new Interrupted(`stopped by ${signal}`)));
  }
  return asked.signal;
};

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal.reason instanceof Error ? signal.reason : new Interrupted());
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });

/** What is starting is not waited for: it fails at once when its process ends, and the rest is taken away as ever. */
const startUnless = async (signal: AbortSignal, progress: Progress): Promise<Stack> => {
  signal.addEventListener('abort', endProcesses, { once: true });
  try {
    return await startStack({ progress });
  } catch (error) {
    return signal.aborted ? await aborted(signal) : Promise.reject(error);
  } finally {
    signal.removeEventListener('abort', endProcesses);
  }
};

const run = async (options: StartOptions): Promise<void> => {
  const signal = interruption();
  const progress = makeProgress(print, signal);
  await using owner = new AsyncDisposableStack();
  const envFile = await claimEnvFile(ROOT);
  owner.defer(() => envFile.remove());
  print('Starting the stack');
  const stack = await startUnless(signal, progress);
  owner.defer(async () => {
    print('Stopping');
    await stack.stop();
  });
  await envFile.write(stack.env);
  if (!options.empty) await Promise.race([runTour(stack, progress), aborted(signal)]);
  if (options.exit) return;
  print(greeting('.local/env'));
  await aborted(signal);
};

const main = async (): Promise<void> => {
  const options = parseOptions(process.argv.slice(2));
  if (!options) return print(USAGE);
  await run(options);
};

/** Ending a stack that was to stay up is no failure; ending `--exit` before its page has come is one. */
const isCleanEnd = (error: unknown): boolean =>
  error instanceof Interrupted && !process.argv.includes('--exit');

main().catch((error: unknown) => {
  process.exitCode = isCleanEnd(error) ? 0 : 1;
  if (process.exitCode === 1)
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  // A build that is under way has nothing to be taken away, and nobody waits for it.
  if (error instanceof Interrupted) process.exit();
});
