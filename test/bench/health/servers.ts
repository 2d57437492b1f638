/** What probes meet, in a process (and on a core) of its own: a proxy of a few lines, an echo over TLS, and a black hole. */

import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

import { z } from 'zod';

const certificateSchema = z.object({ cert: z.string(), key: z.string() });

const ignore = (): void => undefined;

const answerOf = (request: string): string => {
  const nonce = /[?&]nonce=([A-Za-z0-9_-]+)/.exec(request)?.[1] ?? '';
  const body = JSON.stringify({ nonce, address: '127.0.0.1' });
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
};

const echo = (socket: Socket): void => {
  socket.on('error', ignore);
  socket.once('data', (bytes: Buffer) => socket.end(answerOf(bytes.toString('latin1'))));
};

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen({ host: '0.0.0.0', port: 0, backlog: 4096 }, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : 0);
    });
  });

const start = async (certificate: z.output<typeof certificateSchema>): Promise<void> => {
  const tls = createTlsServer(certificate, echo);
  tls.on('tlsClientError', ignore);
  // Answers absolute requests itself, and takes a tunnel's bytes as if they came from outside: no second connection.
  const proxy = createServer((socket) => {
    socket.on('error', ignore);
    socket.once('data', (bytes: Buffer) => {
      if (!bytes.toString('latin1', 0, 8).startsWith('CONNECT ')) {
        socket.end(answerOf(bytes.toString('latin1')));
        return;
      }
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      tls.emit('connection', socket);
    });
  });
  const blackHole = createServer((socket) => socket.on('error', ignore));
  const [proxyPort, tlsPort, blackHolePort] = await Promise.all([proxy, tls, blackHole].map(listen));
  process.send?.({ proxyPort, tlsPort, blackHolePort });
};

process.once('message', (message) => void start(certificateSchema.parse(message)));
process.once('disconnect', () => process.exit(0));
