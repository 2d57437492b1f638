/** When a run looks at what machines left behind: rarely, since a fleet at rest leaves nothing. Pure. */

import { DELETIONS_PREFIX, LEFTOVER_PREFIX, type Observation } from './observation.ts';

const MINUTE_MS = 60_000;
const MINUTES_PER_HOUR = 60;
/** So long after a run that deleted machines something of them may yet appear: a delete takes a minute or two. */
const WATCH_MS = 10 * MINUTE_MS;

type Known = Pick<Observation, 'installation' | 'now' | 'sightings'>;

/** The minute of each hour in which this installation looks: the sum of the codes of its id's characters, modulo 60. */
export const minuteOf = (installation: string): number =>
  Buffer.from(installation).reduce((sum, code) => sum + code, 0) % MINUTES_PER_HOUR;

/** Marks of runs that deleted machines a short time ago. A mark from the future of our clock counts. */
export const freshMarks = ({ now, sightings }: Pick<Known, 'now' | 'sightings'>): readonly string[] =>
  [...sightings].flatMap(([key, at]) =>
    key.startsWith(DELETIONS_PREFIX) && now - at < WATCH_MS ? [key] : [],
  );

/** Sightings of leftovers: a run that looked at none keeps them all. */
export const leftoverKeys = ({ sightings }: Pick<Known, 'sightings'>): readonly string[] =>
  [...sightings.keys()].filter((key) => key.startsWith(LEFTOVER_PREFIX));

/**
 * Once an hour, in the minute `minuteOf(installation)` of it; and in every run while a leftover is being watched, or machines
 * were deleted in the last ten minutes. So a steady fleet costs one more list of `ceil(disks / 500)` calls an hour.
 */
export const looksAtLeftovers = (known: Known): boolean =>
  Math.floor(known.now / MINUTE_MS) % MINUTES_PER_HOUR === minuteOf(known.installation) ||
  leftoverKeys(known).length > 0 ||
  freshMarks(known).length > 0;
