/** Google's list prices in US dollars, us-central1, without free tiers and discounts. */

export interface Price {
  /** Of one. */
  readonly value: number;
  /** How the page has it: so many dollars for so much. */
  readonly listed: string;
  readonly unit: string;
  /** Google's page that is to be asked before somebody relies on it. */
  readonly page: string;
  /** True when it stood in a copy of that page; else somebody else quoted it. */
  readonly firstHand: boolean;
}

/** `dollars` for `of` units. */
const price = (dollars: number, of: number, unit: string, page: string, firstHand: boolean): Price => ({
  value: dollars / of,
  listed: String(dollars),
  unit,
  page: `cloud.google.com/${page}`,
  firstHand,
});

const MILLION = 1_000_000;
const HUNDRED_THOUSAND = 100_000;

/** As found on 2026-11-30. */
export const PRICES = {
  read: price(0.03, HUNDRED_THOUSAND, 'Firestore: 100,000 documents read', 'firestore/pricing', false),
  write: price(0.09, HUNDRED_THOUSAND, 'Firestore: 100,000 documents written', 'firestore/pricing', false),
  delete: price(0.01, HUNDRED_THOUSAND, 'Firestore: 100,000 documents deleted', 'firestore/pricing', false),
  request: price(0.4, MILLION, 'Cloud Run: a million requests', 'run/pricing', false),
  vcpuSecond: price(24, MILLION, 'Cloud Run: a million seconds of a vCPU, by request', 'run/pricing', true),
  gibSecond: price(2.5, MILLION, 'Cloud Run: a million seconds of a GiB, by request', 'run/pricing', false),
  pubsubByte: price(40, 2 ** 40, 'Pub/Sub: a TiB, published or delivered', 'pubsub/pricing', true),
  schedulerJob: price(0.1, 1, 'Scheduler: a job for a month', 'scheduler/pricing', false),
  natHour: price(0.0014, 1, 'Cloud NAT: an instance for an hour', 'nat/pricing', true),
  natAddress: price(0.005, 1, 'Cloud NAT: an address for an hour', 'nat/pricing', true),
  natGib: price(0.045, 1, 'Cloud NAT: a GiB, both ways', 'nat/pricing', true),
  address: price(0.005, 1, 'An address of a machine for an hour', 'vpc/network-pricing', false),
  machine: price(0.0084, 1, 'An e2-micro for an hour', 'compute/vm-instance-pricing', false),
  disk: price(0.04, 1, 'A GiB of standard disk for a month', 'compute/disks-image-pricing', false),
} as const satisfies Readonly<Record<string, Price>>;
