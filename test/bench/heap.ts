/** Memory that is in use, after a full collection. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const collector = (): (() => void) => {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('gc');
  if (typeof gc !== 'function') throw new Error('the engine has no gc');
  return () => void Reflect.apply(gc, undefined, []);
};

let collect: (() => void) | undefined;

/** Bytes. */
export const heapInUse = (): number => {
  collect ??= collector();
  collect();
  return process.memoryUsage().heapUsed;
};
