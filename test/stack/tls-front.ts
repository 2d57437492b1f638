/** What Cloud Run puts before a function: TLS, and the caller's address at the end of X-Forwarded-For. */

import { request as httpRequest } from 'node:http';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { listen } from './listen.ts';

export interface TlsFrontOptions {
  readonly host: string;
  readonly certPem: string;
  readonly keyPem: string;
  /** `http://host:port` behind it. */
  readonly upstream: string;
}

export interface TlsFront {
  /** `https://host:port` */
  readonly url: string;
  stop(): Promise<void>;
}

const forwardedFor = (request: IncomingMessage): string => {
  const earlier = request.headers['x-forwarded-for'];
  const peer = request.socket.remoteAddress ?? '';
  return earlier === undefined ? peer : `${String(earlier)}, ${peer}`;
};

const relay =
  (upstream: URL) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const onward = httpRequest(
      {
        host: upstream.hostname,
        port: upstream.port,
        method: request.method,
        path: request.url,
        headers: {
          ...request.headers,
          'x-forwarded-for': forwardedFor(request),
          'x-forwarded-proto': 'https',
        },
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => {
      if (!response.headersSent) response.writeHead(503);
      response.end();
    });
    request.pipe(onward);
  };

/** Listens on a free port of `host`. */
export const startTlsFront = async (options: TlsFrontOptions): Promise<TlsFront> => {
  const server = createServer(
    { cert: options.certPem, key: options.keyPem },
    relay(new URL(options.upstream)),
  );
  const { port, stop } = await listen(server, options.host);
  return { url: `https://${options.host}:${port}`, stop };
};
