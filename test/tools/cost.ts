/** What an installation costs a month: operations that were counted (`cost-counts.json`), times list prices. */

import type { AtRest, Change, Counts, Leases } from './cost-counts.ts';
import { PRICES } from './prices.ts';

const MINUTES = 43_800;
const HOURS = 730;
const GIB = 2 ** 30;
/** The least that Pub/Sub bills for a publish or a push. */
const MESSAGE_BYTES = 1000;
/** Of both, and of echo, in GiB; each has one vCPU. */
const MEMORY = { health: 0.5, gc: 1, echo: 0.25, discovery: 0.25 } as const;
/** Calls on leases that one instance of discovery answers in a second; assumed, since it depends on what calls it. */
const CALLS_PER_SECOND = 50;
const DISK_GIB = 10;
const NAT_ADDRESSES = 2;

/** Requests of one minute: Scheduler's two, each probe's of echo, and the direct look at it. */
export const requestsOf = ({ health }: AtRest): number => health.probes + 3;

const busy = (seconds: number, gib: number): number =>
  seconds * (PRICES.vcpuSecond.value + gib * PRICES.gibSecond.value);

export interface Line {
  readonly what: string;
  /** Dollars a month. */
  readonly cost: number;
}

/** A month in which nothing changes. */
export const linesOf = (proxies: number, counted: AtRest): readonly Line[] => {
  const { health, gc } = counted;
  // Echo answers as long as a round lasts.
  const running =
    busy(health.seconds, MEMORY.health) + busy(gc.seconds, MEMORY.gc) + busy(health.seconds, MEMORY.echo);
  const nat =
    HOURS * (PRICES.natHour.value + NAT_ADDRESSES * PRICES.natAddress.value) +
    ((health.probes * health.probeBytes * MINUTES) / GIB) * PRICES.natGib.value;
  return [
    { what: 'Firestore: reads', cost: (health.reads + gc.reads) * MINUTES * PRICES.read.value },
    { what: 'Firestore: writes', cost: (health.writes + gc.writes) * MINUTES * PRICES.write.value },
    {
      what: 'Cloud Run: requests (nearly all of them echo)',
      cost: requestsOf(counted) * MINUTES * PRICES.request.value,
    },
    { what: 'Cloud Run: CPU and memory', cost: running * MINUTES },
    { what: 'Cloud NAT of health: two addresses, and data', cost: nat },
    { what: 'Scheduler: two jobs', cost: 2 * PRICES.schedulerJob.value },
    {
      what: `The proxies: e2-micro, ${DISK_GIB} GiB disk`,
      cost: proxies * (HOURS * PRICES.machine.value + DISK_GIB * PRICES.disk.value),
    },
    { what: 'The proxies: an address each', cost: proxies * HOURS * PRICES.address.value },
  ];
};

/** Dollars for 1,000 proxies that are created, replaced or deleted; what their machines cost is not in it. */
export const changeCost = ({ reads, writes, deletes, messages }: Change): number =>
  1000 *
  (reads * PRICES.read.value +
    writes * PRICES.write.value +
    deletes * PRICES.delete.value +
    messages * (PRICES.request.value + 2 * MESSAGE_BYTES * PRICES.pubsubByte.value));

/** Dollars for a million leases. */
export const leasesCost = ({ reads, writes, requests }: Leases): number =>
  1000 *
  (reads * PRICES.read.value +
    writes * PRICES.write.value +
    requests * PRICES.request.value +
    busy(requests / CALLS_PER_SECOND, MEMORY.discovery));

const money = (dollars: number): string => {
  if (dollars < 1) return dollars.toFixed(2);
  return Math.round(dollars).toLocaleString('en-US');
};

const plain = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 1 });

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const total = (lines: readonly Line[]): number => lines.reduce((sum, { cost }) => sum + cost, 0);

const ours = (lines: readonly Line[]): number =>
  total(lines.filter(({ what }) => !what.startsWith('The proxies')));

const headOf = (first: string, columns: readonly string[]): readonly string[] => [
  row([first, ...columns]),
  row(['---', ...columns.map(() => '--:')]),
];

const restTables = (counts: Counts): readonly string[] => {
  const all = Object.entries(counts.atRest).flatMap(([size, { health, gc }]) =>
    health && gc ? [{ proxies: Number(size), counted: { health, gc } }] : [],
  );
  const names = all.map(({ proxies }) => `${plain(proxies)} proxies`);
  const priced = all.map(({ proxies, counted }) => linesOf(proxies, counted));
  const [first = []] = priced;
  const line = (what: string, of: (counted: AtRest) => number): string =>
    row([what, ...all.map(({ counted }) => plain(of(counted)))]);
  return [
    ...headOf('each minute, at rest', names),
    line('Firestore: documents read', ({ health, gc }) => health.reads + gc.reads),
    line('Firestore: documents written', ({ health, gc }) => health.writes + gc.writes),
    line('Cloud Run: requests', requestsOf),
    line('Cloud Run: seconds of health, and of echo', ({ health }) => health.seconds),
    line('Cloud Run: seconds of gc', ({ gc }) => gc.seconds),
    line('Compute Engine: list calls, and as many again once an hour', ({ gc }) => gc.lists),
    line('a probe, in bytes', ({ health }) => health.probeBytes),
    line('memory of gc at its most, in MiB', ({ gc }) => gc.memoryMiB),
    '',
    ...headOf('US dollars a month, at rest', names),
    ...first.map(({ what }, index) => row([what, ...priced.map((lines) => money(lines[index]?.cost ?? 0))])),
    row(['**without the proxies themselves**', ...priced.map((lines) => `**${money(ours(lines))}**`)]),
    row(['**all**', ...priced.map((lines) => `**${money(total(lines))}**`)]),
  ];
};

const changeTable = ({ changes: { created, replaced, deleted } }: Counts): readonly string[] => {
  const all = [created, replaced, deleted].filter((one) => one !== undefined);
  const line = (what: string, of: (one: Change) => number, shown = plain): string =>
    row([what, ...all.map((one) => shown(of(one)))]);
  return [
    ...headOf('under load, for each proxy', ['created', 'replaced', 'deleted']),
    line('Firestore: documents read', ({ reads }) => reads),
    line('Firestore: documents written', ({ writes }) => writes),
    line('Firestore: documents deleted', ({ deletes }) => deletes),
    line('Pub/Sub: messages, each a request of Cloud Run', ({ messages }) => messages),
    line('Compute Engine: calls', ({ computeCalls }) => computeCalls),
    line('**US dollars for a thousand**', changeCost, (cost) => `**${money(cost)}**`),
  ];
};

const leaseTable = ({ leases: { alone, crowded } }: Counts): readonly string[] => {
  const all = [alone, crowded].filter((one) => one !== undefined);
  const line = (what: string, of: (one: Leases) => number, shown = plain): string =>
    row([what, ...all.map((one) => shown(of(one)))]);
  return [
    ...headOf('under load, for 1,000 leases, each acquired, renewed once and released', [
      'one after the other',
      '64 at once on one proxy',
    ]),
    line('Firestore: documents read', ({ reads }) => reads),
    line('Firestore: documents written', ({ writes }) => writes),
    line('Cloud Run: requests', ({ requests }) => requests),
    line('**US dollars for a million**', leasesCost, (cost) => `**${money(cost)}**`),
  ];
};

const priceTable = (): readonly string[] => [
  row(['list price', 'US dollars', 'page', 'seen']),
  row(['---', '--:', '---', '---']),
  ...Object.values(PRICES).map(({ unit, listed, page, firstHand }) =>
    row([unit, listed, page, firstHand ? 'in a copy of the page' : 'second-hand']),
  ),
];

/** Tables of operations and dollars, and of the prices. */
export const costTables = (counts: Counts): string =>
  [restTables(counts), changeTable(counts), leaseTable(counts), priceTable()]
    .map((lines) => lines.join('\n'))
    .join('\n\n');
