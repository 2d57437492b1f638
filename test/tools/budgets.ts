/** What a bundle may weigh and hold, so that no start gets slower unnoticed: counts, since times say little on a busy machine. */

/** The most that it may have of each, and the packages that have no business in it. */
export interface Budget extends Sizes {
  readonly without: readonly string[];
}

/** What esbuild says of an output: its size, the paths that went into it with what is left of each, and what it imports. */
export interface Output {
  readonly bytes: number;
  readonly entryPoint?: string;
  readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>>;
  readonly imports: readonly { readonly path: string; readonly kind: string; readonly external?: boolean }[];
}
export type Outputs = Readonly<Record<string, Output>>;

const COMPUTE = ['@google-cloud/compute'];
const KUBERNETES = ['@kubernetes/client-node', 'undici'];
const FIRESTORE = ['@google-cloud/firestore', '@google-cloud/firestore-api'];
const MB = 1_000_000;

/** A little more than each has today; raising one is a decision. */
export const BUDGETS = {
  echo: { startFiles: 2, startBytes: 10_000, bytes: 10_000, without: ['*'] },
  discovery: { startFiles: 8, startBytes: 0.33 * MB, bytes: 2.1 * MB, without: [...COMPUTE, ...KUBERNETES] },
  health: { startFiles: 8, startBytes: 0.33 * MB, bytes: 2.1 * MB, without: [...COMPUTE, ...KUBERNETES] },
  gc: { startFiles: 8, startBytes: 0.33 * MB, bytes: 3.2 * MB, without: [] },
  provision: { startFiles: 8, startBytes: 0.33 * MB, bytes: 3.2 * MB, without: [] },
  watcher: { startFiles: 1, startBytes: 2.6 * MB, bytes: 2.6 * MB, without: [...COMPUTE, ...FIRESTORE] },
} as const satisfies Readonly<Record<string, Budget>>;

/** Of the Compute client the description of its own API is 12 MB; a bundle holds what its services reach. */
const PROTOS_BYTES = 0.5 * MB;
const PROTOS = '@google-cloud/compute/build/protos/protos.json';

const packageOf = (path: string): string | undefined =>
  /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];

/** The entry awaits one import, that of the function itself; every other one that is awaited is for later. */
const startOf = (outputs: Outputs): readonly Output[] => {
  const found = new Set<Output>();
  const open = Object.keys(outputs).filter((path) => /\/index\.m?js$/.test(path));
  const entry = open[0];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const output = outputs[path];
    if (!output || found.has(output)) continue;
    found.add(output);
    open.push(
      ...output.imports
        .filter(({ kind }) => kind !== 'dynamic-import' || path === entry)
        .map((one) => one.path),
    );
  }
  return [...found];
};

/** Of what a function reads before its first answer, files and bytes; bytes of all that it may ever read. */
export interface Sizes {
  readonly startFiles: number;
  readonly startBytes: number;
  readonly bytes: number;
}

const sum = (outputs: readonly Output[]): number => outputs.reduce((total, { bytes }) => total + bytes, 0);

export const sizesOf = (outputs: Outputs): Sizes => {
  const start = startOf(outputs);
  return { startFiles: start.length, startBytes: sum(start), bytes: sum(Object.values(outputs)) };
};

const NAMES = {
  startFiles: 'files at its start',
  startBytes: 'bytes at its start',
  bytes: 'bytes in all',
} as const satisfies Record<keyof Sizes, string>;

const sizeFindings = (name: string, budget: Budget, outputs: Outputs): readonly string[] => {
  const sizes = sizesOf(outputs);
  return (['startFiles', 'startBytes', 'bytes'] as const)
    .filter((what) => sizes[what] > budget[what])
    .map((what) => `${name} reads ${sizes[what]} ${NAMES[what]}, of which ${budget[what]} are allowed`);
};

/** What is wrong with a bundle; none is as it should be. */
export const budgetFindings = (name: string, budget: Budget, outputs: Outputs): readonly string[] => {
  const used = Object.values(outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const packages = new Set(used.map(([path]) => packageOf(path)).filter((found) => found !== undefined));
  const unwanted = [...packages].filter((found) =>
    budget.without.some((one) => one === '*' || one === found),
  );
  const heavy = used.filter(([path, one]) => path.endsWith(PROTOS) && one.bytesInOutput > PROTOS_BYTES);
  return [
    ...sizeFindings(name, budget, outputs),
    ...unwanted.map((found) => `${name} contains ${found}`),
    ...heavy.map(([path]) => `${name} contains the whole of ${path}`),
  ];
};
