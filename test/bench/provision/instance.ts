/** One instance as the kernel and its own runtime see it: CPU, resident memory, live heap. */

import { readFileSync } from 'node:fs';

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';

/** Kernel clock ticks per second in /proc. */
const TICKS = 100;

export interface Usage {
  /** Milliseconds of CPU since the start. */
  readonly cpuMs: number;
  /** Bytes. */
  readonly rss: number;
  /** Bytes that live after a collection: heap and what hangs on it. */
  readonly live: number;
}

const cpuMs = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
};

const targetsSchema = z.array(z.looseObject({ webSocketDebuggerUrl: z.string() }));
const replySchema = z.looseObject({ id: z.number().optional(), result: z.unknown().optional() });
const memorySchema = z.object({
  result: z.object({
    value: z.object({ rss: z.number(), heapUsed: z.number(), external: z.number() }),
  }),
});

export interface Inspector {
  call(method: string, params?: object): Promise<unknown>;
  close(): void;
}

/** Speaks to a process that was started with `--inspect`. */
export const openInspector = async (port: number): Promise<Inspector> => {
  const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = targetsSchema.parse(await answer.json());
  if (!target) throw new Error('the process shows no inspector');
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  const waiting = new Map<number, (result: unknown) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = replySchema.parse(JSON.parse(String(data)));
    if (id !== undefined) waiting.get(id)?.(result);
    if (id !== undefined) waiting.delete(id);
  });
  let last = 0;
  return {
    call: (method, params = {}) =>
      new Promise((resolve) => {
        last += 1;
        waiting.set(last, resolve);
        socket.send(JSON.stringify({ id: last, method, params }));
      }),
    close: () => socket.close(),
  };
};

/** CPU alone, without disturbing the process. */
export const cpuOf = cpuMs;

/** Collects garbage first, so that only what is held counts. */
export const usageOf = async (pid: number, inspector: Inspector): Promise<Usage> => {
  await inspector.call('HeapProfiler.collectGarbage');
  await pause(200);
  await inspector.call('HeapProfiler.collectGarbage');
  const reply = await inspector.call('Runtime.evaluate', {
    expression: '(({rss, heapUsed, external}) => ({rss, heapUsed, external}))(process.memoryUsage())',
    returnByValue: true,
  });
  const { value } = memorySchema.parse(reply).result;
  return { cpuMs: cpuMs(pid), rss: value.rss, live: value.heapUsed + value.external };
};
