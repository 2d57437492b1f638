/** Requests through a forward proxy, and a target that says where they came from. */

import { createServer, request, type IncomingMessage } from 'node:http';

export interface ProxyAddress {
  readonly host: string;
  readonly port: number;
  readonly credentials?: { readonly username: string; readonly password: string } | undefined;
}

export interface ProxyReply {
  readonly status: number;
  readonly body: string;
}

export interface Target {
  /** `http://127.0.0.1:port/` */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

/** A server that answers every request with the address that it came from. */
export const startTarget = async (): Promise<Target> => {
  const server = createServer((message, response) => response.end(message.socket.remoteAddress));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/`,
    host: '127.0.0.1',
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

const authorization = ({ credentials }: ProxyAddress): Record<string, string> =>
  credentials
    ? {
        'proxy-authorization': `Basic ${Buffer.from(
          `${credentials.username}:${credentials.password}`,
        ).toString('base64')}`,
      }
    : {};

const bodyOf = async (message: IncomingMessage): Promise<ProxyReply> => {
  let body = '';
  for await (const chunk of message) body += String(chunk);
  return { status: message.statusCode ?? 0, body };
};

const DEADLINE_MS = 5_000;

/** A GET in absolute form. Rejects when there is no answer. */
export const getThrough = (proxy: ProxyAddress, target: Target): Promise<ProxyReply> =>
  new Promise((resolve, reject) => {
    request({
      host: proxy.host,
      port: proxy.port,
      path: target.url,
      headers: { host: `${target.host}:${target.port}`, ...authorization(proxy) },
      agent: false,
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
      .once('response', (message) => {
        bodyOf(message).then(resolve, reject);
      })
      .once('error', reject)
      .end();
  });

/** A GET in a tunnel; where the tunnel is refused, the refusal. Rejects when there is no answer. */
export const tunnelThrough = (proxy: ProxyAddress, target: Target): Promise<ProxyReply> =>
  new Promise((resolve, reject) => {
    request({
      method: 'CONNECT',
      host: proxy.host,
      port: proxy.port,
      path: `${target.host}:${target.port}`,
      headers: authorization(proxy),
      agent: false,
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
      .once('connect', (reply, socket) => {
        if (reply.statusCode !== 200) {
          socket.destroy();
          resolve({ status: reply.statusCode ?? 0, body: '' });
          return;
        }
        request({
          createConnection: () => socket,
          host: target.host,
          path: '/',
          headers: { connection: 'close' },
        })
          .once('response', (message) => {
            bodyOf(message).then(resolve, reject);
          })
          .once('error', reject)
          .end();
      })
      .once('error', reject)
      .end();
  });

/** Asks again and again until there is something; fails after `ms`. */
export const eventually = async <T>(look: () => Promise<T | undefined>, ms = 10_000): Promise<T> => {
  const deadline = performance.now() + ms;
  let last: unknown;
  while (performance.now() < deadline) {
    try {
      const found = await look();
      if (found !== undefined) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  throw new Error(`nothing came in ${ms} ms`, { cause: last });
};
