/** What an identity may do in the cluster. */

import { z } from 'zod';

import { call } from './proxies.ts';
import type { Identity } from './provided.ts';

const names = z.array(z.string()).default([]);
const rulesReview = z.object({
  status: z.object({
    incomplete: z.boolean(),
    resourceRules: z.array(
      z.object({ verbs: names, apiGroups: names, resources: names, resourceNames: names }),
    ),
  }),
});

/** What anyone who is authenticated may do: ask who he is and what he may do. */
const EVERYONE = new Set(['authentication.k8s.io', 'authorization.k8s.io']);

/** All that the API server would let this user do in a namespace, by the server's own judgement. */
export const rights = async (user: Identity, namespace: string): Promise<string[]> => {
  const answer = await call(
    '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    {
      method: 'POST',
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectRulesReview',
        spec: { namespace },
      },
    },
    user,
  );
  const { incomplete, resourceRules } = rulesReview.parse(answer.body).status;
  if (incomplete) throw new Error('the API server cannot tell all rights');
  return resourceRules
    .filter(({ apiGroups }) => !apiGroups.every((group) => EVERYONE.has(group)))
    .flatMap(({ verbs, resources, resourceNames }) =>
      verbs.flatMap((verb) => resources.map((resource) => [verb, resource, ...resourceNames].join(' '))),
    )
    .sort();
};
