/** The kubelet's door: no framework, since nothing here has a body. */

import { createServer, type Server } from 'node:http';

import { toFramework, type HttpHandler } from '#shared/app/http.ts';
import type { Log } from '#shared/app/log.ts';

/** Listens on `port`; rejects when it is taken. */
export const serve = (handler: HttpHandler, port: number, log: Log): Promise<Server> => {
  const respond = toFramework(handler, log);
  const server = createServer((request, response) => {
    request.resume();
    void respond(
      { method: request.method ?? 'GET', originalUrl: request.url ?? '/', headers: request.headers },
      {
        status: (code) => {
          response.statusCode = code;
        },
        setHeader: (name, value) => response.setHeader(name, value),
        end: (body) => response.end(body),
      },
    );
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => {
      server.off('error', reject);
      resolve(server);
    });
  });
};

/** Closes the server and whatever connection a prober keeps open. */
export const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
