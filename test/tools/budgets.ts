/** What a bundle may weigh and hold, so that no start gets slower unnoticed: counts, since times say little on a busy machine. */

/** Bytes of the bundle, and the packages that have no business in it. */
export interface Budget {
  readonly bytes: number;
  readonly without: readonly string[];
}

/** What esbuild says that went into an output: paths with the bytes that are left of each. */
export interface Contents {
  readonly bytes: number;
  readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>>;
}

const COMPUTE = ['@google-cloud/compute'];
const KUBERNETES = ['@kubernetes/client-node', 'undici'];
const FIRESTORE = ['@google-cloud/firestore', '@google-cloud/firestore-api'];
const MB = 1_000_000;

/** A little more than each has today; raising one is a decision. */
export const BUDGETS = {
  echo: { bytes: 20_000, without: ['*'] },
  discovery: { bytes: 7.2 * MB, without: [...COMPUTE, ...KUBERNETES] },
  health: { bytes: 7.2 * MB, without: [...COMPUTE, ...KUBERNETES] },
  gc: { bytes: 9.5 * MB, without: [] },
  provision: { bytes: 9.5 * MB, without: [] },
  watcher: { bytes: 7.1 * MB, without: [...COMPUTE, ...FIRESTORE] },
} as const satisfies Readonly<Record<string, Budget>>;

/** Of the Compute client the description of its own API is 12 MB; a bundle holds what its services reach. */
const PROTOS_BYTES = 0.5 * MB;
const PROTOS = '@google-cloud/compute/build/protos/protos.json';

const packageOf = (path: string): string | undefined =>
  /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];

/** What is wrong with a bundle; none is as it should be. */
export const budgetFindings = (
  name: string,
  budget: Budget,
  { bytes, inputs }: Contents,
): readonly string[] => {
  const used = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const packages = new Set(used.map(([path]) => packageOf(path)).filter((found) => found !== undefined));
  const unwanted = [...packages].filter((found) =>
    budget.without.some((one) => one === '*' || one === found),
  );
  const heavy = used.filter(([path, one]) => path.endsWith(PROTOS) && one.bytesInOutput > PROTOS_BYTES);
  return [
    ...(bytes > budget.bytes ? [`${name} has ${bytes} bytes, of which ${budget.bytes} are allowed`] : []),
    ...unwanted.map((found) => `${name} contains ${found}`),
    ...heavy.map(([path]) => `${name} contains the whole of ${path}`),
  ];
};
