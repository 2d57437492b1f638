/** A page to fetch through a proxy: it says from which address the request came. */

import { createServer } from 'node:http';

import { listen } from './listen.ts';

export interface Target {
  /** `http://host:port/` */
  readonly url: string;
  stop(): Promise<void>;
}

const page = (from: string): string => `<!doctype html>
<title>Egress Proxies</title>
<p>This page was fetched from <code>${from}</code>.</p>
`;

/** Listens on a free port of `host`. */
export const startTarget = async (host: string): Promise<Target> => {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(page(request.socket.remoteAddress ?? 'an unknown address'));
  });
  const { port, stop } = await listen(server, host);
  return { url: `http://${host}:${port}/`, stop };
};
