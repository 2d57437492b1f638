/** Compute Engine on loopback: the REST API that the real client speaks, with real proxies as running machines. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

import type { Log } from '#shared/app/log.ts';

import type { AddressAllocator } from './addresses.ts';
import { CALLS, type ApiRequest } from './api.ts';
import { makeCallLog, type CallLog } from './calls.ts';
import { answerControl } from './control-http.ts';
import { makeControl, type ComputeControl } from './control.ts';
import { ApiError, errorBody, errorOfStatus, invalid, notFound } from './errors.ts';
import { routeOf, type Route } from './routes.ts';
import { makeWorld, type World } from './world.ts';

export interface ComputeStandInOptions {
  readonly projectId: string;
  readonly host?: string;
  /** 0 (default) takes a free port. */
  readonly port?: number;
  readonly addresses: AddressAllocator;
  /** From RUNNING until the machine's proxy listens; milliseconds, default 50. */
  readonly bootMs?: number;
  /** How long an operation takes; milliseconds, default 100. */
  readonly operationMs?: number;
  /** Items on a page of a list at most; default 500, the API's own. */
  readonly longestPage?: number;
  readonly zones?: readonly string[];
  readonly log: Log;
}

export interface ComputeStandIn {
  /** `http://host:port` */
  readonly url: string;
  readonly control: ComputeControl;
  /** Another `http://host:port` of the same API; calls that come by it are logged as those of `caller`. */
  openFor(caller: string): Promise<string>;
  /** Ends the API, every machine and every timer. */
  stop(): Promise<void>;
}

export const DEFAULT_ZONES = [
  'europe-west1-b',
  'europe-west1-c',
  'europe-west1-d',
  'us-central1-a',
  'us-central1-b',
  'us-central1-c',
] as const;

const KEEP_ALIVE_MS = 600_000;
const MAX_BODY_BYTES = 10 * 1024 * 1024;

/** What is sent; `lost` closes the connection instead. */
type Reply =
  { readonly kind: 'json'; readonly status: number; readonly body: unknown } | { readonly kind: 'lost' };

const json = (status: number, body: unknown): Reply => ({ kind: 'json', status, body });

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!(chunk instanceof Uint8Array)) continue;
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) throw new ApiError(413, 'uploadTooLarge', 'The request is too large.');
    chunks.push(chunk);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new ApiError(400, 'parseError', 'Parse Error');
  }
};

const checkScope = (world: World, route: Route): void => {
  if (route.project !== world.projectId) throw notFound(`projects/${route.project}`);
  if (route.zone === '') return;
  if (!world.zones.includes(route.zone)) throw invalid('zone', route.zone, 'Unknown zone.');
  if (world.faults.unreachable(route.zone)) throw errorOfStatus(503);
};

const nameIn = (route: Route, body: unknown): string =>
  route.method === 'instances.insert' &&
  typeof body === 'object' &&
  body !== null &&
  'name' in body &&
  typeof body.name === 'string'
    ? body.name
    : route.name;

/** A scripted 404 reads like a real one. */
const notFoundMessage = (path: string): string => {
  const resource = /projects\/[^/]+\/zones\/[^/]+\/[^/]+\/[^/]+/u.exec(path)?.[0] ?? path;
  return notFound(resource).message;
};

const answerCall = async (world: World, request: ApiRequest, route: Route, url: URL): Promise<Reply> => {
  const occasion = {
    method: request.method,
    zone: request.zone === '' ? undefined : request.zone,
    name: request.name,
  };
  const scripted = world.faults.nextStatus(occasion);
  if (scripted && scripted.status >= 300) {
    const { status, fault } = scripted;
    const usual = status === 404 && route.name !== '' ? notFoundMessage(url.pathname) : undefined;
    throw errorOfStatus(status, fault.reason, fault.message ?? usual);
  }
  checkScope(world, route);
  const reply = json(200, await CALLS[request.method](world, request));
  const slow = world.faults.strike('slowResponse', occasion);
  if (slow) {
    await new Promise<void>((resolve) => {
      world.timers.after(slow.ms, resolve);
    });
  }
  return world.faults.strike('lostResponse', occasion) ? { kind: 'lost' } : reply;
};

const replyToError = (world: World, error: unknown): Reply => {
  if (error instanceof ApiError) return json(error.status, errorBody(error));
  world.log.error('the stand-in failed', error);
  return json(500, errorBody(errorOfStatus(500)));
};

const answerApi = async (
  world: World,
  calls: CallLog,
  message: IncomingMessage,
  { url, caller }: { readonly url: URL; readonly caller: string | undefined },
): Promise<Reply> => {
  const at = world.now();
  const httpMethod = message.method ?? 'GET';
  const route = routeOf(httpMethod, url.pathname);
  let name = route?.name ?? '';
  const answer = async (): Promise<Reply> => {
    try {
      const body = await readBody(message);
      if (!route) throw new ApiError(404, 'notFound', `There is no ${httpMethod} ${url.pathname}.`);
      name = nameIn(route, body);
      const { method, zone } = route;
      const query = url.searchParams;
      const allowsPartial =
        query.get('returnPartialSuccess') === 'true' || message.headers['x-goog-api-version'] !== undefined;
      return await answerCall(world, { method, zone, name, query, body, allowsPartial }, route, url);
    } catch (error) {
      return replyToError(world, error);
    }
  };
  const reply = await answer();
  calls.record({
    at,
    method: route?.method ?? 'unknown',
    httpMethod,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    ...(route?.zone ? { zone: route.zone } : {}),
    ...(name === '' ? {} : { name }),
    ...(caller === undefined ? {} : { caller }),
    status: reply.kind === 'lost' ? 0 : reply.status,
  });
  return reply;
};

const answerControlCall = async (
  world: World,
  control: ComputeControl,
  message: IncomingMessage,
  url: URL,
): Promise<Reply> => {
  try {
    const body = await readBody(message);
    const path = url.pathname.slice('/_control'.length);
    const httpMethod = message.method ?? 'GET';
    return json(200, await answerControl(control, { httpMethod, path, query: url.searchParams, body }));
  } catch (error) {
    return replyToError(world, error);
  }
};

const send = (response: ServerResponse, reply: Reply): void => {
  if (reply.kind === 'lost') {
    response.socket?.destroy();
    return;
  }
  response.writeHead(reply.status, { 'content-type': 'application/json; charset=UTF-8' });
  response.end(JSON.stringify(reply.body));
};

const listen = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

/** Starts the stand-in; it answers when this resolves. */
export const startComputeStandIn = async (options: ComputeStandInOptions): Promise<ComputeStandIn> => {
  const host = options.host ?? '127.0.0.1';
  const world = makeWorld({
    projectId: options.projectId,
    zones: options.zones ?? DEFAULT_ZONES,
    operationMs: options.operationMs ?? 100,
    bootMs: options.bootMs ?? 50,
    longestPage: options.longestPage ?? 500,
    addresses: options.addresses,
    log: options.log,
  });
  const calls = makeCallLog();
  const control = makeControl(world, calls);
  const servers: Server[] = [];
  const open = async (port: number, caller?: string): Promise<string> => {
    const server = createServer((message, response) => {
      const url = new URL(message.url ?? '/', 'http://stand-in');
      const answer = url.pathname.startsWith('/_control')
        ? answerControlCall(world, control, message, url)
        : answerApi(world, calls, message, { url, caller });
      void answer.then((reply) => send(response, reply));
    });
    // Like the real one's: with Node's five seconds, clients meet connections that are just being closed.
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    servers.push(server);
    return `http://${host}:${await listen(server, host, port)}`;
  };
  return {
    url: await open(options.port ?? 0),
    control,
    openFor: (caller) => open(0, caller),
    stop: async () => {
      world.timers.stop();
      const closed = servers.map((server) => close(server));
      const proxies = [...world.instances.values()].map((instance) => {
        instance.life += 1;
        return instance.proxy?.stop();
      });
      await Promise.all([...closed, ...proxies, ...world.background]);
    },
  };
};
