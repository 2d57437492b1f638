/** Targets and proxies for probes: the real echo over TLS, and peers that misbehave on real sockets. */

import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

import { toFramework } from '#shared/app/http.ts';
import { makeLog } from '#shared/app/log.ts';
import type { Issued } from '#test/services/authority.ts';

import { makeHandler as makeEcho } from '../../../functions/echo/handler.ts';

export interface TestServer {
  readonly port: number;
  /** Connections that are open now. */
  open(): number;
  /** Connections that were ever accepted. */
  accepted(): number;
  close(): Promise<void>;
}

const started = async (server: Server, host: string): Promise<TestServer> => {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    open: () => sockets.size,
    accepted: () => accepted,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
};

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const echo = toFramework(
  makeEcho(),
  makeLog(() => undefined),
);

/** The real echo function behind a server of Node's. */
export const echoAnswer: Answer = (request, response) => {
  void echo(
    {
      method: request.method ?? '',
      originalUrl: request.url ?? '/',
      headers: request.headers,
      socket: request.socket,
    },
    {
      status: (code) => response.writeHead(code),
      setHeader: () => undefined,
      end: (body) => response.end(body),
    },
  );
};

export const startTarget = (answer: Answer, tls?: Issued, host = '127.0.0.1'): Promise<TestServer> =>
  started(
    tls ? createHttpsServer({ cert: tls.certPem, key: tls.keyPem }, answer) : createHttpServer(answer),
    host,
  );

export type Behaviour = (socket: Socket) => void;

/** A peer that does just what `behave` does, and keeps its connections until either side ends them. */
export const startPeer = (behave: Behaviour, host = '127.0.0.1'): Promise<TestServer> => {
  const server = createTcpServer((socket) => {
    behave(socket);
    // Unread data would hide that the other side has gone.
    socket.resume();
  });
  return started(server, host);
};

/** The same behind TLS. */
export const startTlsPeer = (behave: Behaviour, tls: Issued): Promise<TestServer> => {
  const server = createTlsServer({ cert: tls.certPem, key: tls.keyPem }, behave);
  server.on('tlsClientError', () => undefined);
  return started(server, '127.0.0.1');
};

/** A proxy that answers every CONNECT with a tunnel to one port, and always leaves from 127.0.0.1. */
export const tunnelTo =
  (port: number): Behaviour =>
  (socket) => {
    socket.once('data', () => {
      const upstream = connect(port, '127.0.0.1');
      upstream.on('error', () => socket.destroy());
      socket.on('close', () => upstream.destroy());
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
  };

/** Answers the first bytes that come with these bytes, then stays silent (or closes). */
export const answering =
  (text: string, then: 'stay' | 'end' = 'end') =>
  (socket: Socket): void => {
    socket.once('data', () => {
      socket.write(text, 'latin1');
      if (then === 'end') socket.end();
    });
  };

/** Answers with these bytes, and then a piece at a time, for ever. */
export const dripping =
  (text: string, piece: string, everyMs: number) =>
  (socket: Socket): void => {
    socket.once('data', () => {
      socket.write(text, 'latin1');
      const drip = (): void => {
        if (socket.destroyed) return;
        socket.write(piece, 'latin1');
        setTimeout(drip, everyMs).unref();
      };
      drip();
    });
  };
