import { randomBytes, randomUUID } from 'node:crypto';

/** Source of identifiers and of jitter. */
export interface Ids {
  /** 128 random bits in lower-case hex. */
  token(): string;
  /** A random UUID (version 4). */
  uuid(): string;
  /** Uniform in [0, 1). */
  fraction(): number;
}

const TOKEN_BYTES = 16;
const DRAWN_BYTES = 256 * TOKEN_BYTES;

/** Random bytes are drawn for many tokens at once: a draw costs more than all else that a probe does in its own code. */
const makeTokens = (): (() => string) => {
  let drawn = Buffer.alloc(0);
  let used = 0;
  return () => {
    if (used === drawn.length) {
      drawn = randomBytes(DRAWN_BYTES);
      used = 0;
    }
    used += TOKEN_BYTES;
    return drawn.toString('hex', used - TOKEN_BYTES, used);
  };
};

export const systemIds: Ids = {
  token: makeTokens(),
  uuid: () => randomUUID(),
  fraction: () => Math.random(),
};
