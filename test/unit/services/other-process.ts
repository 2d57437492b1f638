/** Another process of this machine, for what only shows between processes. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface OtherProcess {
  readonly pid: number | undefined;
  /** The first that it wrote. */
  readonly output: string;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** Runs a module's text and resolves at its first output. */
export const startScript = async (script: string): Promise<OtherProcess> => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (data: Buffer) => resolve(data.toString().trim()));
    child.once('exit', (code) => reject(new Error(`the script ended with ${code} before it wrote anything`)));
  });
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  return { pid: child.pid, output, kill };
};
