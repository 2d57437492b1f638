/** What a crawler does: lease a proxy, fetch through it, release it. */

import { request } from 'node:http';

import { z } from 'zod';

const leaseSchema = z.object({
  leaseId: z.string(),
  fencingToken: z.number(),
  proxy: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  host: z.string(),
  port: z.number(),
  scheme: z.enum(['http', 'https']),
  username: z.string().optional(),
  password: z.string().optional(),
  url: z.string(),
  expiresAt: z.string(),
});
export type CrawlerLease = z.infer<typeof leaseSchema>;

const refusal = async (what: string, answer: Response): Promise<Error> =>
  new Error(`${what} was answered ${answer.status}: ${await answer.text()}`);

/** Acquires a lease. Throws with discovery's own words when there is none. */
export const acquire = async (
  discoveryUrl: string,
  body: Readonly<Record<string, unknown>>,
): Promise<CrawlerLease> => {
  const answer = await fetch(`${discoveryUrl}/v1/leases`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw await refusal('acquire', answer);
  return leaseSchema.parse(await answer.json());
};

export const release = async (discoveryUrl: string, { leaseId }: CrawlerLease): Promise<void> => {
  const answer = await fetch(`${discoveryUrl}/v1/leases/${leaseId}`, { method: 'DELETE' });
  if (answer.status !== 204) throw await refusal('release', answer);
};

const authorization = ({ username, password }: CrawlerLease): Record<string, string> =>
  username === undefined
    ? {}
    : { 'proxy-authorization': `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` };

const FETCH_MS = 10_000;

/** Fetches an `http://` page through the leased proxy, in absolute form. */
export const fetchThrough = (lease: CrawlerLease, url: string): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const call = request(
      {
        host: lease.host,
        port: lease.port,
        path: url,
        headers: { host: new URL(url).host, ...authorization(lease) },
        agent: false,
        signal: AbortSignal.timeout(FETCH_MS),
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          body += chunk;
        });
        response.once('error', reject);
        response.once('end', () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    call.once('error', reject);
    call.end();
  });
