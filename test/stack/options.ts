/** Command line of `npm start -- …`. */

import { parseArgs } from 'node:util';

export interface StartOptions {
  /** Without the samples. */
  readonly empty: boolean;
  /** Tear down after the page came through the proxy. */
  readonly exit: boolean;
}

export const USAGE = `Usage: npm start [-- OPTIONS]

  --empty   start without the sample Proxies
  --exit    apply the samples, fetch a page through a leased proxy, tear down, exit 0 only if that worked
  --help    this text
`;

/** Undefined = help was asked for. Throws with a readable message on unknown or contradictory options. */
export const parseOptions = (args: readonly string[]): StartOptions | undefined => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      empty: { type: 'boolean', default: false },
      exit: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false, short: 'h' },
    },
    allowPositionals: false,
  });
  if (values.help) return undefined;
  if (values.empty && values.exit) {
    throw new Error('--empty and --exit exclude each other: without samples there is no page to fetch');
  }
  return { empty: values.empty, exit: values.exit };
};
