/**
 * A real forward proxy on an address of its own: CONNECT tunnels and absolute-form requests, Basic authentication, and
 * outgoing connections from the very address that it listens on, so that targets see where they came from. It refuses
 * no target, loopback included: on this machine everything is on loopback. A proxy on the internet must refuse it.
 */

import { Agent } from 'node:http';

import { RequestError, Server, type PrepareRequestFunction } from 'proxy-chain';

import { pause } from '#shared/app/wait.ts';

/**
 * How a proxy treats its clients. `blackhole` accepts and never answers, `refuse` closes the port, `407` refuses every
 * password, `502` fails every request, `slow` answers after `ms`.
 */
export type ProxyMode =
  | { readonly kind: 'ok' | 'blackhole' | 'refuse' | '407' | '502' }
  | { readonly kind: 'slow'; readonly ms: number };

export interface ForwardProxyOptions {
  /** The address to listen on and to connect from. */
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** With a key and a certificate clients speak TLS to the proxy. */
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly mode?: ProxyMode;
}

export interface ForwardProxy {
  readonly host: string;
  readonly port: number;
  /** Requests that were taken so far, refused ones included. */
  requests(): number;
  setMode(mode: ProxyMode): Promise<void>;
  /** Closes the port and every connection. */
  stop(): Promise<void>;
}

interface Listener {
  readonly port: number;
  close(): Promise<void>;
}

const listen = async (
  options: ForwardProxyOptions,
  port: number,
  prepareRequestFunction: PrepareRequestFunction,
): Promise<Listener> => {
  const common = { host: options.host, port, prepareRequestFunction };
  const server = options.tls
    ? new Server({ ...common, serverType: 'https', httpsOptions: options.tls })
    : new Server(common);
  await server.listen();
  return { port: server.port, close: () => server.close(true) };
};

/** Starts a proxy; it listens when this resolves, unless its mode is `refuse`. */
export const startForwardProxy = async (options: ForwardProxyOptions): Promise<ForwardProxy> => {
  const stopping = new AbortController();
  const httpAgent = new Agent({ keepAlive: true });
  let mode: ProxyMode = options.mode ?? { kind: 'ok' };
  let requests = 0;

  const isAllowed = (username: string, password: string): boolean =>
    !options.credentials ||
    (options.credentials.username === username && options.credentials.password === password);

  const prepare: PrepareRequestFunction = async ({ username, password }) => {
    requests += 1;
    if (mode.kind === 'blackhole') await new Promise<never>(() => undefined);
    if (mode.kind === 'slow') await pause(mode.ms, stopping.signal);
    if (mode.kind === '502') throw new RequestError('Bad gateway', 502);
    if (mode.kind === '407' || !isAllowed(username, password)) return { requestAuthentication: true };
    return { localAddress: options.host, ipFamily: 4, httpAgent };
  };

  let listener: Listener | undefined = await listen(options, options.port, prepare);
  const { port } = listener;

  const closePort = async (): Promise<void> => {
    const open = listener;
    listener = undefined;
    await open?.close();
  };
  const applyMode = async (): Promise<void> => {
    if (mode.kind === 'refuse') await closePort();
    else if (!stopping.signal.aborted) listener ??= await listen(options, port, prepare);
  };
  await applyMode();

  return {
    host: options.host,
    port,
    requests: () => requests,
    setMode: async (next) => {
      mode = next;
      await applyMode();
    },
    stop: async () => {
      stopping.abort();
      await closePort();
      httpAgent.destroy();
    },
  };
};
