/** A cloud of many machines that does nothing but list them and their boot disks, page by page, as Compute Engine's REST API does. */

import { once } from 'node:events';
import { createServer } from 'node:http';

import { MACHINE_LABELS } from '#shared/domain/names.ts';

export interface Listed {
  readonly name: string;
  readonly zone: string;
  readonly id: string;
  readonly address: string;
  readonly uid: string;
  readonly installation: string;
}

const instanceOf = ({ name, zone, id, address, uid, installation }: Listed) => ({
  id,
  name,
  zone: `https://www.googleapis.com/compute/v1/projects/bench/zones/${zone}`,
  status: 'RUNNING',
  creationTimestamp: '2026-01-01T00:00:00.000-08:00',
  labels: { [MACHINE_LABELS.installation]: installation, [MACHINE_LABELS.uid]: uid },
  networkInterfaces: [{ networkIP: '10.0.0.2', accessConfigs: [{ natIP: address }] }],
});

const diskOf = ({ name, zone, id, uid, installation }: Listed) => ({
  id: `${id}1`,
  name,
  zone: `https://www.googleapis.com/compute/v1/projects/bench/zones/${zone}`,
  status: 'READY',
  creationTimestamp: '2026-01-01T00:00:00.000-08:00',
  labels: { [MACHINE_LABELS.installation]: installation, [MACHINE_LABELS.uid]: uid },
  users: [`https://www.googleapis.com/compute/v1/projects/bench/zones/${zone}/instances/${name}`],
});

/** Paths end with it. */
export const DISKS = '/aggregated/disks';

const pageOf = (machines: readonly Listed[], kind: 'disk' | 'instance', query: URLSearchParams) => {
  const from = Number(query.get('pageToken') ?? 0);
  const until = from + Number(query.get('maxResults') ?? 500);
  const some = machines.slice(from, until);
  const zones = Map.groupBy(some, ({ zone }) => `zones/${zone}`);
  return {
    kind: `compute#${kind}AggregatedList`,
    items: Object.fromEntries(
      [...zones].map(([zone, all]) => [
        zone,
        kind === 'disk' ? { disks: all.map(diskOf) } : { instances: all.map(instanceOf) },
      ]),
    ),
    ...(until < machines.length ? { nextPageToken: String(until) } : {}),
  };
};

export interface Cloud {
  readonly url: string;
  /** Requests so far, by path. */
  readonly calls: () => ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

export const startCloud = async (machines: readonly Listed[]): Promise<Cloud> => {
  const calls = new Map<string, number>();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://cloud');
    calls.set(pathname, (calls.get(pathname) ?? 0) + 1);
    request.resume();
    response.setHeader('content-type', 'application/json');
    const kind = pathname.endsWith(DISKS) ? 'disk' : 'instance';
    response.end(JSON.stringify(pageOf(machines, kind, searchParams)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (!address || typeof address === 'string') throw new Error('the cloud has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    calls: () => calls,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};
