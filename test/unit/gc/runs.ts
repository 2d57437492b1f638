/** What tests of whole runs begin with and read. */

import { z } from 'zod';

import type { HttpReply } from '#shared/app/http.ts';
import type { ProxyObject } from '#shared/kubernetes/cluster.ts';

import { LIMITS, aMachine, uidOf } from './builders.ts';
import { aWorld, call, type World } from './fakes.ts';

const replySchema = z.object({
  digest: z.string().optional(),
  frozen: z.array(z.object({ reason: z.string() })).optional(),
  steppedAside: z.string().optional(),
  deletions: z
    .array(z.object({ kind: z.string(), name: z.string(), outcome: z.string().optional() }))
    .optional(),
  machines: z.unknown().optional(),
  code: z.string().optional(),
  detail: z.string().optional(),
});
export const body = (reply: HttpReply) => replySchema.parse(reply.body);

export const proxyObject = (n: number): ProxyObject => ({
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  metadata: {
    namespace: 'crawlers',
    name: `proxy-${n}`,
    uid: uidOf(n),
    generation: 1,
    resourceVersion: '1',
    creationTimestamp: '2026-11-01T00:00:00Z',
  },
  spec: {},
});

export const orphan = aMachine(1);

/** A world with these orphans, in which earlier runs have seen them. */
export const worldOfOrphans = async (count = 1): Promise<World> => {
  const world = aWorld(Array.from({ length: count }, (_, index) => aMachine(index + 1)));
  await call(world);
  world.now += LIMITS.sightingGapMs;
  world.writes.length = 0;
  return world;
};
