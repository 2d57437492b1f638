/** One wall-clock budget for a whole probe. Nothing that a peer sends, or does not send, can stretch it. */

import type { Socket } from 'node:net';

import { ProbeFailure } from './failure.ts';

export interface Budget {
  /** Takes a socket into care: it is destroyed with the probe, whatever becomes of that. */
  own<S extends Socket>(socket: S): S;
  /** From now on running out of time is no longer a connect time-out. */
  connected(): void;
}

const ignore = (): void => undefined;

/** Runs `work` for at most `ms`; then, and in every other case, all of its sockets are destroyed. Throws `ProbeFailure`s. */
export const withinBudget = async <T>(ms: number, work: (budget: Budget) => Promise<T>): Promise<T> => {
  const sockets: Socket[] = [];
  let over = false;
  let connected = false;
  const expiry = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const failure = connected
      ? new ProbeFailure('Timeout', `no complete answer within ${ms} ms`)
      : new ProbeFailure('ConnectTimeout', `no connection within ${ms} ms`);
    expiry.reject(failure);
  }, ms);
  const budget: Budget = {
    own: (socket) => {
      // Errors after the end have nobody left to tell.
      socket.on('error', ignore);
      if (over) socket.destroy();
      else sockets.push(socket);
      return socket;
    },
    connected: () => {
      connected = true;
    },
  };
  try {
    return await Promise.race([work(budget), expiry.promise]);
  } finally {
    over = true;
    clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
  }
};
