/** Google's Firestore and Pub/Sub emulators, each an instance of our own on a free port. */

import { join } from 'node:path';

import {
  emulatorProgram,
  installCommand,
  javaProgram,
  missingEmulators,
  sdkRoot,
  type Emulator,
} from '#test/setup/cloud-sdk.mjs';
import { claimPort } from './ports.ts';
import { startProcess, waitUntilReady } from './process.ts';

export interface EmulatorOptions {
  /** The log goes there; the folder must exist. */
  readonly runDir: string;
  /** The most that Java's heap may grow to, in MiB; the emulators keep all their data in it. */
  readonly heapMiB?: number;
}

export interface RunningEmulator {
  /** `127.0.0.1:<port>`, the form of FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST. */
  readonly host: string;
  readonly pid: number;
  stop(): Promise<void>;
}

const START_MS = 60_000;

const program = (name: Emulator): string => {
  const root = sdkRoot(process.env);
  if (root === undefined)
    throw new Error('the Google Cloud SDK is not installed: there is no gcloud on the PATH');
  if (missingEmulators(root).includes(name)) {
    throw new Error(`the ${name} emulator is not installed; run: ${installCommand(root, [name])}`);
  }
  return emulatorProgram(root, name);
};

/*
 * Firestore's start script keeps a shell above its Java; with `exec` Java takes the shell's place, so that what is
 * stopped is what serves.
 */
const environment = (heapMiB: number): NodeJS.ProcessEnv => ({
  ...process.env,
  JAVA: `exec ${javaProgram(process.env) ?? 'java'}`,
  JAVA_TOOL_OPTIONS: [process.env['JAVA_TOOL_OPTIONS'], `-Xmx${heapMiB}m`].filter(Boolean).join(' '),
});

interface Launch {
  readonly name: Emulator;
  readonly args: readonly string[];
  readonly heapMiB: number;
}

const startEmulator = async (options: EmulatorOptions, launch: Launch): Promise<RunningEmulator> => {
  const command = program(launch.name);
  const claim = await claimPort();
  try {
    const emulator = await startProcess({
      name: `the ${launch.name} emulator`,
      command,
      args: [...launch.args, '--host=127.0.0.1', `--port=${claim.port}`],
      env: environment(options.heapMiB ?? launch.heapMiB),
      logFile: join(options.runDir, `${launch.name}-emulator.log`),
    });
    const host = `127.0.0.1:${claim.port}`;
    const probe = async (signal: AbortSignal): Promise<boolean> =>
      (await fetch(`http://${host}/`, { signal })).ok;
    await waitUntilReady(emulator, { probe, timeoutMs: START_MS });
    const stop = async (): Promise<void> => {
      await emulator.stop();
      await claim.release();
    };
    return { host, pid: emulator.pid, stop };
  } catch (error) {
    await claim.release();
    throw error;
  }
};

export const startFirestoreEmulator = (options: EmulatorOptions): Promise<RunningEmulator> =>
  startEmulator(options, { name: 'firestore', args: ['start'], heapMiB: 1_024 });

export const startPubsubEmulator = (options: EmulatorOptions): Promise<RunningEmulator> =>
  startEmulator(options, { name: 'pubsub', args: [], heapMiB: 512 });
