import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, describe, expect, test, vi } from 'vitest';

import { startProcess, tail, waitUntilReady } from '#test/services/process.ts';

import { startScript } from './other-process.ts';

const PROCESS = fileURLToPath(new URL('../../services/process.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'process-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
const shell = (script: string) => {
  count += 1;
  return {
    name: 'sample',
    command: 'sh',
    args: ['-c', script],
    logFile: join(folder, `${count}.log`),
  };
};

/** False for a zombie too: it runs no more, whoever has yet to reap it. */
const alive = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
  } catch {
    return false;
  }
};

const logged = (file: string): Promise<string> =>
  vi.waitUntil(() => tail(file) || undefined, { timeout: 5_000 });

describe('a managed process', () => {
  test('is one process: nothing stands between it and what it was asked to run', async () => {
    const child = await startProcess(shell('echo $$; exec sleep 60'));
    expect(await logged(child.logFile)).toBe(String(child.pid));
    await child.stop();
  });

  test('ends at SIGTERM, with everything that it started', async () => {
    const child = await startProcess(shell('sleep 60 & echo $!; wait'));
    const grandchild = Number(await logged(child.logFile));
    expect(alive(grandchild)).toBe(true);
    await child.stop();
    expect(child.running()).toBe(false);
    expect(alive(grandchild)).toBe(false);
  });

  test('that ignores SIGTERM is killed when its time is up', async () => {
    const child = await startProcess(shell("trap '' TERM; echo ready; while :; do sleep 1; done"));
    await logged(child.logFile);
    await child.stop(100);
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('that has ended is stopped without waiting, any number of times', async () => {
    const child = await startProcess(shell('exit 3'));
    expect(await child.exited).toEqual({ code: 3, signal: null });
    await Promise.all([child.stop(), child.stop()]);
  });

  test('dies with its parent, even when that is killed', async () => {
    const spec = shell('exec sleep 60');
    const parent = await startScript(`
      const { startProcess } = await import(${JSON.stringify(PROCESS)});
      const child = await startProcess(${JSON.stringify(spec)});
      console.log(child.pid);
      setTimeout(() => {}, 60_000);`);
    const pid = Number(parent.output);
    expect(alive(pid)).toBe(true);
    await parent.kill();
    await vi.waitUntil(() => !alive(pid), { timeout: 5_000 });
  });
});

const refused = (): Promise<boolean> => Promise.reject(new Error('connection refused'));

describe('waiting until a process is ready', () => {
  test('resolves when the probe succeeds, whatever it threw before', async () => {
    const child = await startProcess(shell('exec sleep 60'));
    let calls = 0;
    const probe = async (): Promise<boolean> => {
      calls += 1;
      if (calls === 1) throw new Error('refused');
      return Promise.resolve(calls > 2);
    };
    await waitUntilReady(child, { probe, timeoutMs: 5_000 });
    expect(calls).toBe(3);
    await child.stop();
  });

  test('fails at once, with the last of its log, when the process ends first', async () => {
    const child = await startProcess(shell('echo no such flag >&2; exit 2'));
    const start = performance.now();
    await expect(
      waitUntilReady(child, { probe: () => Promise.resolve(false), timeoutMs: 60_000 }),
    ).rejects.toThrow(/sample ended while it was starting \(exit code 2\).*no such flag/su);
    expect(performance.now() - start).toBeLessThan(5_000);
  });

  test('fails at the deadline, says why the last probe failed, and leaves nothing running', async () => {
    const child = await startProcess(shell('echo thinking; exec sleep 60'));
    const waiting = waitUntilReady(child, { probe: refused, timeoutMs: 200 });
    const error = await waiting.catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/was not ready after 0\.2 s.*thinking/su);
    expect(error).toHaveProperty('cause', new Error('connection refused'));
    expect(alive(child.pid)).toBe(false);
  });

  test('fails for a program that does not exist', async () => {
    const child = await startProcess({ ...shell(''), command: join(folder, 'missing'), args: [] });
    await expect(
      waitUntilReady(child, { probe: () => Promise.resolve(false), timeoutMs: 60_000 }),
    ).rejects.toThrow(/exit code 127.*missing/su);
  });
});
