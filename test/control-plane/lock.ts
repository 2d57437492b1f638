/** A lock among the processes of this machine that the kernel gives back when its holder dies. */

import { createHash } from 'node:crypto';
import { connect, createServer, type Server } from 'node:net';

const LINE = 64;

/** An abstract socket: a name in the kernel, not a file, so there is nothing stale to find or to clean up. */
const socketPath = (name: string): string =>
  `\0egress-proxies/${createHash('sha256').update(name).digest('hex')}`;

const tryHold = (name: string): Promise<Server | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer((waiter) => {
      waiter.on('error', () => waiter.destroy());
      waiter.write(`${process.pid}`.padEnd(LINE));
    });
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(socketPath(name), () => resolve(server));
  });

/** Resolves when the holder has let go, or was gone already; `onHolder` gets its process id. */
const released = (name: string, onHolder: (pid: string) => void): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(socketPath(name));
    socket.once('data', (data) => onHolder(data.toString().trim()));
    socket.on('error', () => socket.destroy());
    socket.once('close', () => resolve());
  });

/** Runs `work` while no other process is inside `withLock` of the same name; `onWait` is called when it has to wait. */
export const withLock = async <T>(
  name: string,
  onWait: (holderPid: string) => void,
  work: () => Promise<T>,
): Promise<T> => {
  let server = await tryHold(name);
  while (!server) {
    await released(name, onWait);
    server = await tryHold(name);
  }
  const waiters = new Set<() => void>();
  server.on('connection', (socket) => waiters.add(() => socket.destroy()));
  try {
    return await work();
  } finally {
    server.close();
    for (const end of waiters) end();
  }
};
