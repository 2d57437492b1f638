/**
 * What an installation costs a month, from operations per minute and list prices. The operations are what tests and
 * benchmarks count on the real emulators; the prices are Google's, as published when they were read.
 */

/** US dollars, us-central1, without free tiers; read between 2026-09 and 2026-11. */
export const PRICES = {
  /** Per document. */
  read: 0.03 / 100_000,
  write: 0.09 / 100_000,
  /** Cloud Run, billed by request. */
  request: 0.4 / 1_000_000,
  vcpuSecond: 0.000024,
  gibSecond: 0.0000025,
  schedulerJob: 0.1,
  /** Per hour. */
  address: 0.005,
  e2Micro: 0.0084,
  /** Per GiB that Cloud NAT handles. */
  natGib: 0.045,
  /** Per GiB-month of a standard disk. */
  disk: 0.04,
} as const;

const MINUTES = 43_800;
const HOURS = 730;

/** Operations of one minute in which nothing changes. */
export interface AtRest {
  readonly proxies: number;
  readonly shards: number;
  readonly reads: number;
  readonly writes: number;
  readonly requests: number;
  /** Seconds for which instances of 1 vCPU are busy: health, gc, echo. */
  readonly seconds: readonly [health: number, gc: number, echo: number];
  /** Through Cloud NAT, by health. */
  readonly bytes: number;
}

/** Both directions of a TLS handshake and an answer, as the wire counts them. */
const PROBE_BYTES = 6000;
/** Index of the fleet, what changed since, sightings, the cluster's identity, the lock. */
const GC_READS = 5;
const GC_SECONDS = 2;

/** Starts of probes are spread over up to 25 s (`startAfter`), 2 ms apart. */
const roundSeconds = (proxies: number): number => 1 + Math.min(25, (proxies * 2) / 1000);

export const atRest = (proxies: number): AtRest => {
  const shards = proxies > 1000 ? 4 : 1;
  const round = roundSeconds(proxies);
  return {
    proxies,
    shards,
    // A round reads each record that is published, and claims each shard by a write (goal 9).
    reads: proxies + shards + GC_READS,
    writes: shards,
    // One of Scheduler for health and gc each, and echo's for each probe and each direct look.
    requests: proxies + 4,
    seconds: [round, GC_SECONDS, round],
    bytes: proxies * PROBE_BYTES,
  };
};

export interface Line {
  readonly what: string;
  /** Dollars a month. */
  readonly cost: number;
}

const GIB = 2 ** 30;

export const linesOf = ({ proxies, reads, writes, requests, seconds, bytes }: AtRest): readonly Line[] => {
  const [health, gc, echo] = seconds;
  const busy = health + gc + echo;
  const memory = (health + gc) * 0.5 + echo * 0.25;
  const { read, write, request, vcpuSecond, gibSecond, schedulerJob, address, e2Micro, natGib, disk } =
    PRICES;
  return [
    { what: 'Firestore: reads', cost: reads * MINUTES * read },
    { what: 'Firestore: writes', cost: writes * MINUTES * write },
    { what: 'Cloud Run: requests (nearly all of them echo)', cost: requests * MINUTES * request },
    { what: 'Cloud Run: CPU and memory', cost: MINUTES * (busy * vcpuSecond + memory * gibSecond) },
    {
      what: 'Cloud NAT of health: two addresses, and data',
      cost: 2 * HOURS * address + ((bytes * MINUTES) / GIB) * natGib,
    },
    { what: 'Scheduler: two jobs', cost: 2 * schedulerJob },
    { what: 'The proxies: e2-micro, 10 GiB disk', cost: proxies * (HOURS * e2Micro + 10 * disk) },
    { what: 'The proxies: an address each', cost: proxies * HOURS * address },
  ];
};

/** Dollars for a million leases, each acquired, renewed once, and released; warm instances read nothing (idea 6). */
export const leasesPerMillion = (): number => {
  const calls = 3_000_000;
  const { write, request, vcpuSecond, gibSecond } = PRICES;
  // At 50 calls a second an instance is busy all the time.
  const busy = calls / 50;
  return calls * write + calls * request + busy * (vcpuSecond + 0.25 * gibSecond);
};

const money = (dollars: number): string => {
  if (dollars < 1) return dollars.toFixed(2);
  return Math.round(dollars).toLocaleString('en-US');
};

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const total = (lines: readonly Line[]): number => lines.reduce((sum, { cost }) => sum + cost, 0);

const ours = (lines: readonly Line[]): number =>
  total(lines.filter(({ what }) => !what.startsWith('The proxies')));

/** Two tables: operations, and dollars. */
export const costTables = (sizes: readonly number[]): string => {
  const all = sizes.map(atRest);
  const names = sizes.map((size) => `${size.toLocaleString('en-US')} proxies`);
  const priced = all.map(linesOf);
  const [first = []] = priced;
  const count = (what: string, of: (one: AtRest) => number): string =>
    row([what, ...all.map((one) => Math.round(of(one)).toLocaleString('en-US'))]);
  return [
    row(['each minute, at rest', ...names]),
    row(['---', ...names.map(() => '--:')]),
    count('Firestore: documents read', (one) => one.reads),
    count('Firestore: documents written', (one) => one.writes),
    count('Cloud Run: requests', (one) => one.requests),
    count('Cloud Run: seconds of an instance', ({ seconds }) => seconds.reduce((sum, each) => sum + each, 0)),
    count('Compute Engine: list calls', ({ proxies }) => Math.ceil(proxies / 500)),
    '',
    row(['US dollars a month', ...names]),
    row(['---', ...names.map(() => '--:')]),
    ...first.map(({ what }, line) => row([what, ...priced.map((lines) => money(lines[line]?.cost ?? 0))])),
    row(['**without the proxies themselves**', ...priced.map((lines) => `**${money(ours(lines))}**`)]),
    row(['**all**', ...priced.map((lines) => `**${money(total(lines))}**`)]),
    '',
    `A million leases, each acquired, renewed once and released: ${money(leasesPerMillion())} dollars, nearly all of it Firestore's writes.`,
  ].join('\n');
};
