/** The HTTP side: finds the route, and words what is refused. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

import { z } from 'zod';

import { pause } from '#shared/app/wait.ts';
import { listen, type Listening } from '#test/stack/listen.ts';

import { ApiError, disabled, errorBody, invalid, notFound } from './errors.ts';
import { findRoute, type Route } from './routes.ts';
import type { Resource, World } from './world.ts';

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return Buffer.concat(chunks);
};

const object = z.record(z.string(), z.unknown());

const jsonOf = (raw: Buffer, type: string | undefined): Resource => {
  if (raw.length === 0 || !type?.startsWith('application/json')) return {};
  try {
    return object.parse(JSON.parse(raw.toString('utf8')));
  } catch {
    throw invalid('Invalid JSON payload received.');
  }
};

/** Those that every project has from its beginning. */
const ALWAYS_ON = new Set(['serviceusage', 'storage', 'upload']);

const requireService = (world: World, path: string): void => {
  const name = path.split('/')[0] ?? '';
  const service = `${name}.googleapis.com`;
  if (!ALWAYS_ON.has(name) && !world.enabled.has(service)) throw disabled(service, world.projectId);
};

const answerTo = async (
  world: World,
  routes: readonly Route[],
  request: IncomingMessage,
  raw: Buffer,
): Promise<Resource> => {
  const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://stand-in');
  const path = pathname.slice(1);
  const method = request.method ?? 'GET';
  requireService(world, path);
  const match = findRoute(routes, method, path);
  if (!match) throw notFound(`${method} ${path}`);
  const { headers } = request;
  const body = jsonOf(raw, headers['content-type']);
  return match.answer(world, { method, path, query, headers, raw, body, at: match.at });
};

export interface Call {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  /** As it was sent. */
  readonly sent: string;
}

export interface ServerOptions {
  /** Before each answer, in milliseconds. */
  readonly latencyMs: number;
  /** Is told every call. */
  readonly onCall: (call: Call) => void;
}

/** What the stand-in cannot do is said at once: the provider repeats a 500 for minutes. */
const refusalOf = (error: unknown): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError(501, 'notImplemented', 'UNIMPLEMENTED', `The stand-in failed: ${String(error)}`);

const respond = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

export const serve = (
  world: World,
  routes: readonly Route[],
  { latencyMs, onCall }: ServerOptions,
): Promise<Listening> => {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const raw = await bodyOf(request);
    let status = 200;
    let body: object;
    try {
      body = await answerTo(world, routes, request, raw);
    } catch (error) {
      const refusal = refusalOf(error);
      status = refusal.code;
      body = errorBody(refusal);
    }
    onCall({ method: request.method ?? '', url: request.url ?? '', status, sent: raw.toString('utf8') });
    await pause(latencyMs);
    respond(response, status, body);
  };
  return listen(
    createServer((request, response) => void handle(request, response)),
    '127.0.0.1',
  );
};
