/** Connections and exchanges on them, as promises that settle once. */

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';

import type { Budget } from './budget.ts';
import { ProbeFailure, connectFailure, handshakeFailure, lostFailure } from './failure.ts';
import type { Parsed } from './response.ts';
import type { Sessions } from './sessions.ts';

/** Host without brackets, as sockets want it. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Waits for one event; nothing stays attached to the socket, since thousands of them are held open at once. */
const until = (socket: Socket, event: string, failure: (error: unknown) => ProbeFailure): Promise<void> =>
  new Promise((resolve, reject) => {
    const settle = (error?: unknown): void => {
      socket.off(event, onEvent).off('error', settle).off('close', onClose);
      if (error === undefined) resolve();
      else reject(error instanceof ProbeFailure ? error : failure(error));
    };
    const onEvent = (): void => settle();
    const onClose = (): void => settle(new ProbeFailure('ConnectionLost', `closed before ${event}`));
    socket.on(event, onEvent).on('error', settle).on('close', onClose);
  });

/** A TCP connection. */
export const openTcp = async (budget: Budget, { host, port }: Place): Promise<Socket> => {
  const socket = budget.own(connectTcp({ host, port, noDelay: true }));
  await until(socket, 'connect', connectFailure);
  budget.connected();
  return socket;
};

/** Whom a handshake is with. `resumed` = sessions of this peer, under this name, are kept and resumed. */
export interface Peer {
  readonly host: string;
  readonly secureContext: SecureContext;
  readonly resumed?: { readonly sessions: Sessions; readonly authority: string };
}

/** TLS over a connection that stands; certificate and name (or address) are verified, once for each session. */
export const openTls = async (
  budget: Budget,
  socket: Socket,
  { host, secureContext, resumed }: Peer,
): Promise<Socket> => {
  const session = resumed?.sessions.of(resumed.authority);
  const secure = budget.own(
    connectTls({
      socket,
      secureContext,
      host,
      ...(session ? { session } : {}),
      // An address has no place in SNI, but is verified all the same.
      ...(isIP(host) ? {} : { servername: host }),
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
    }),
  );
  try {
    await until(secure, 'secureConnect', handshakeFailure);
  } catch (error) {
    resumed?.sessions.drop(resumed.authority);
    throw error;
  }
  // Sessions come after the handshake, and so only from whom it was verified to be.
  if (resumed) secure.once('session', (next: Buffer) => resumed.sessions.keep(resumed.authority, next));
  return secure;
};

const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Sends a request and feeds all that has come so far to `parse`, until that is done. `malformed` says whose fault it is
 * when it is no HTTP.
 */
export const exchange = <T>(
  socket: Socket,
  request: string,
  parse: (bytes: Buffer, ended: boolean) => Parsed<T>,
  malformed: 'ProxyError' | 'WrongContent',
): Promise<T> =>
  new Promise((resolve, reject) => {
    let bytes = NOTHING;
    let isSettled = false;
    const consider = (ended: boolean): void => {
      const parsed = parse(bytes, ended);
      if (parsed.kind === 'more') return;
      isSettled = true;
      socket.off('data', onData);
      if (parsed.kind === 'done') resolve(parsed.value);
      else reject(new ProbeFailure(malformed, `answer: ${parsed.why}`));
    };
    const onData = (chunk: Buffer): void => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      consider(false);
    };
    // Every probe ends with a close: after the answer it costs nothing.
    const onEnd = (): void => {
      if (!isSettled) consider(true);
      if (!isSettled) reject(new ProbeFailure('ConnectionLost', 'closed before the answer was complete'));
      isSettled = true;
    };
    socket.on('data', onData);
    socket.once('end', onEnd);
    socket.once('close', onEnd);
    socket.once('error', (error) => reject(lostFailure(error)));
    socket.write(request, 'latin1');
  });
