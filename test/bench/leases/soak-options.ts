/** How long, how wide and how hard a soak is. */

import type { Fleet } from './world.ts';

/** Of every lease: what a holder that crashed leaves behind is over soon. */
export const TTL_SECONDS = 2;

export interface SoakOptions {
  readonly fleet: Fleet;
  readonly grants: number;
  /** It ends then, however few the grants are. Milliseconds. */
  readonly maxMs?: number;
  readonly proxies: number;
  readonly maxLeases: number;
  readonly instances: number;
  readonly workers: number;
  /** Uniform in [0, 1); seeded. */
  readonly random: () => number;
  readonly say?: (line: string) => void;
}
