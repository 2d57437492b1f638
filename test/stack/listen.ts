/** HTTP servers of the stack itself. */

import type { Server } from 'node:http';

export interface Listening {
  readonly port: number;
  /** Closes the server and every connection to it. */
  readonly stop: () => Promise<void>;
}

/** Listens on a free port of `host`. Rejects when the address cannot be used. */
export const listen = async (server: Server, host: string): Promise<Listening> => {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no TCP port');
  return {
    port: address.port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
