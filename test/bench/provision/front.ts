/** The platform's front of one instance: passes requests on, at most `concurrency` at a time, and counts the answers. */

import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';

export interface Front {
  readonly url: string;
  /** Answers so far by status; 0 where there was none. */
  readonly answers: ReadonlyMap<number, number>;
  readonly inFlight: () => number;
  stop(): Promise<void>;
}

/** As Cloud Run does with an instance: what is above its concurrency waits at the front. */
export const startFront = async (target: string, concurrency: number): Promise<Front> => {
  const answers = new Map<number, number>();
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  let inFlight = 0;
  const waiting: (() => void)[] = [];
  const enter = (): Promise<void> => {
    if (inFlight < concurrency) {
      inFlight += 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => waiting.push(resolve));
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else inFlight -= 1;
  };
  const pass = (message: IncomingMessage, body: Buffer): Promise<number> =>
    new Promise((resolve) => {
      const sent = request(
        new URL(message.url ?? '/', target),
        {
          method: message.method ?? 'POST',
          agent,
          headers: { 'content-type': 'application/json', 'content-length': body.length },
        },
        (reply) => {
          reply.resume();
          reply.once('end', () => resolve(reply.statusCode ?? 0));
          reply.once('error', () => resolve(0));
        },
      );
      sent.once('error', () => resolve(0));
      sent.end(body);
    });
  const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of message) if (chunk instanceof Uint8Array) chunks.push(chunk);
    await enter();
    const status = await pass(message, Buffer.concat(chunks)).finally(leave);
    answers.set(status, (answers.get(status) ?? 0) + 1);
    response.writeHead(status === 0 ? 502 : status).end();
  };
  const server = createServer((message, response) => void answer(message, response));
  server.requestTimeout = 0;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    answers,
    inFlight: () => inFlight,
    stop: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
