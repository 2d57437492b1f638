import { fileURLToPath } from 'node:url';

import { describe, expect, test } from 'vitest';

import { withLock } from '#test/control-plane/lock.ts';

import { startScript } from './other-process.ts';

const LOCK = fileURLToPath(new URL('../../control-plane/lock.ts', import.meta.url));

/** Another process that is inside the lock until it is killed. */
const heldElsewhere = (name: string) =>
  startScript(`
    const { withLock } = await import(${JSON.stringify(LOCK)});
    await withLock(${JSON.stringify(name)}, () => {}, () => new Promise((resolve) => {
      console.log('inside');
      setTimeout(resolve, 60_000);
    }));`);

describe('the lock around a build', () => {
  test('lets one in at a time, in this process too', async () => {
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      inside -= 1;
    };
    const name = `test-${process.pid}-one`;
    await Promise.all(Array.from({ length: 8 }, () => withLock(name, () => undefined, work)));
    expect(most).toBe(1);
  });

  test('names the process that is waited for, and is free when that is killed', async () => {
    const name = `test-${process.pid}-two`;
    const holder = await heldElsewhere(name);
    const holders: string[] = [];
    const onWait = (pid: string): void => {
      holders.push(pid);
      void holder.kill();
    };
    expect(await withLock(name, onWait, () => Promise.resolve('done'))).toBe('done');
    expect(holders).toEqual([String(holder.pid)]);
  });

  test('is free after a failure, which is passed on', async () => {
    const name = `test-${process.pid}-three`;
    const failing = withLock(
      name,
      () => undefined,
      () => Promise.reject(new Error('no space left')),
    );
    await expect(failing).rejects.toThrow('no space left');
    expect(
      await withLock(
        name,
        () => undefined,
        () => Promise.resolve(1),
      ),
    ).toBe(1);
  });
});
