/** A TCP link to a service, whose cable can be cut, blocked without a sign, or pulled out. */

import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';

export interface Link {
  /** `127.0.0.1:port`. */
  readonly host: string;
  /** Connections that were asked for so far, refused ones included. */
  readonly attempts: () => number;
  readonly open: () => number;
  /** Ends every connection; new ones are welcome. */
  readonly cut: () => void;
  /** Bytes vanish both ways, connections stay; new ones are accepted and hang. */
  readonly block: () => void;
  /** Every connection ends, new ones are reset at once. */
  readonly refuse: () => void;
  /** New connections work; those that were blocked stay so. */
  readonly heal: () => void;
  readonly close: () => Promise<void>;
}

/** Opens a link to `target`, `host:port`. */
export const openLink = async (target: string): Promise<Link> => {
  const { hostname, port } = new URL(`tcp://${target}`);
  const sockets = new Set<Socket>();
  let attempts = 0;
  let mode: 'open' | 'blocked' | 'refusing' = 'open';

  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  const server = createServer((near) => {
    attempts += 1;
    keep(near);
    if (mode === 'refusing') near.resetAndDestroy();
    if (mode !== 'open') return;
    const far = keep(connect(Number(port), hostname));
    near.pipe(far);
    far.pipe(near);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address: AddressInfo | string | null = server.address();
  if (!address || typeof address === 'string') throw new Error('the link has no port');

  return {
    host: `127.0.0.1:${address.port}`,
    attempts: () => attempts,
    open: () => sockets.size,
    cut,
    block() {
      mode = 'blocked';
      for (const socket of sockets) socket.unpipe().pause();
    },
    refuse() {
      mode = 'refusing';
      cut();
    },
    heal() {
      mode = 'open';
    },
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
};

/** Writes a copy of `kubeconfig` to `file` that goes to its `server` (`https://host:port`) over the link at `host`. */
export const kubeconfigOver = (
  { host }: Pick<Link, 'host'>,
  {
    kubeconfig,
    server,
    file,
  }: { readonly kubeconfig: string; readonly server: string; readonly file: string },
): string => {
  writeFileSync(file, readFileSync(kubeconfig, 'utf8').replace(server, `https://${host}`), { mode: 0o600 });
  return file;
};
