/** Calls on discovery, in this process or over HTTP, and loops of workers that make them. */

import { Agent, request } from 'node:http';

import { z } from 'zod';

import type { HttpHandler } from '#shared/app/http.ts';

export interface Answer {
  readonly status: number;
  readonly leaseId: string;
}

/** One client of the API. */
export interface Client {
  acquire(): Promise<Answer>;
  release(leaseId: string): Promise<number>;
}

const lease = z.object({ leaseId: z.string() });
const leaseIdOf = (body: unknown): string => lease.safeParse(body).data?.leaseId ?? '';

const BODY = JSON.stringify({ holder: 'bench', ttlSeconds: 300 });

export const inProcess = (handler: HttpHandler): Client => {
  const headers = { 'content-type': 'application/json' };
  const body = new TextEncoder().encode(BODY);
  const nothing = new Uint8Array();
  return {
    async acquire() {
      const query = new URLSearchParams();
      const reply = await handler({ method: 'POST', path: '/v1/leases', query, headers, body });
      return { status: reply.status, leaseId: leaseIdOf(reply.body) };
    },
    async release(leaseId) {
      const path = `/v1/leases/${leaseId}`;
      const call = { method: 'DELETE', path, query: new URLSearchParams(), headers: {}, body: nothing };
      return (await handler(call)).status;
    },
  };
};

/** An answer as text. */
export interface Sent {
  readonly status: number;
  readonly text: string;
}

const sendOnce = (agent: Agent, url: string, method: string, body?: string): Promise<Sent | 'closed'> =>
  new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const call = request(url, { method, agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    // A server closes connections that were idle for a while, perhaps just when one is used again.
    call.once('error', (error) => (call.reusedSocket ? resolve('closed') : reject(error)));
    call.end(body);
  });

export const send = async (agent: Agent, url: string, method: string, body?: string): Promise<Sent> => {
  for (;;) {
    const sent = await sendOnce(agent, url, method, body);
    if (sent !== 'closed') return sent;
  }
};

/** Over kept-alive connections. */
export const overHttp = (url: string): Client & { close(): void } => {
  const agent = new Agent({ keepAlive: true, maxSockets: 128 });
  return {
    async acquire() {
      const { status, text } = await send(agent, `${url}/v1/leases`, 'POST', BODY);
      return { status, leaseId: status === 201 ? leaseIdOf(JSON.parse(text)) : '' };
    },
    release: async (leaseId) => (await send(agent, `${url}/v1/leases/${leaseId}`, 'DELETE')).status,
    close: () => agent.destroy(),
  };
};

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Milliseconds. */
export const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

/** Workers that repeat `work` for `ms`; resolves with repetitions per second. */
export const rateOf = async (
  workers: number,
  ms: number,
  work: (worker: number) => Promise<void>,
): Promise<number> => {
  const start = performance.now();
  let done = 0;
  const loop = async (worker: number): Promise<void> => {
    while (performance.now() - start < ms) {
      await work(worker);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => loop(worker)));
  return (done * 1_000) / (performance.now() - start);
};

/** Acquire, then release where it was granted or through another client. */
export const acquireAndRelease = async (through: Client, back: Client = through): Promise<void> => {
  const { status, leaseId } = await through.acquire();
  if (status !== 201) throw new Error(`acquire answered ${status}`);
  const released = await back.release(leaseId);
  if (released !== 204) throw new Error(`release answered ${released}`);
};
