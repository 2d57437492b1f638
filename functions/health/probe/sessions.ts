/**
 * TLS sessions of targets that every probe asks, so that most handshakes are resumed: those cost both sides a fraction of a
 * whole one. Whoever cannot resume a session has not its keys, and has to show a certificate as ever.
 */

export interface Sessions {
  /** The last session of a target; `undefined` = a whole handshake. */
  of(authority: string): Buffer | undefined;
  keep(authority: string, session: Buffer): void;
  /** After a handshake that failed: perhaps it was for the session. */
  drop(authority: string): void;
}

/** For targets that are configured, which are few; one session each. */
export const makeSessions = (): Sessions => {
  const kept = new Map<string, Buffer>();
  return {
    of: (authority) => kept.get(authority),
    keep: (authority, session) => kept.set(authority, session),
    drop: (authority) => kept.delete(authority),
  };
};
