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

export const systemIds: Ids = {
  token: () => randomBytes(16).toString('hex'),
  uuid: () => randomUUID(),
  fraction: () => Math.random(),
};
