/** Rules that a plan must keep: indexes, code, databases, who may call whom, and that a second plan is empty. */

import { z } from 'zod';

import type { PlannedResource } from './plan.ts';
import type { QueryShape } from './queries.ts';

const ofType = (plan: readonly PlannedResource[], type: string): readonly PlannedResource[] =>
  plan.filter((resource) => resource.type === type);

const indexSchema = z.object({
  collection: z.string(),
  fields: z.array(z.object({ field_path: z.string() })),
});
const fieldSchema = z.object({
  collection: z.string(),
  field: z.string(),
  index_config: z.array(z.object({ indexes: z.array(z.unknown()).nullish() })).nullish(),
});

/** Single-field indexes that were given up: `collection.field`. */
const withoutIndex = (plan: readonly PlannedResource[]): ReadonlySet<string> =>
  new Set(
    ofType(plan, 'google_firestore_field')
      .map(({ change }) => fieldSchema.parse(change.after))
      .filter((one) => one.index_config?.every(({ indexes }) => (indexes ?? []).length === 0))
      .map(({ collection, field }) => `${collection}.${field}`),
  );

/** Equalities in any order, then the one field of a range or order: that is what an index must begin with, and all of it. */
const serves = (fields: readonly string[], { filters, order }: QueryShape): boolean => {
  const equal = new Set(filters.filter(([, operator]) => operator === 'EQUAL').map(([field]) => field));
  const rest = new Set([
    ...filters.filter(([, operator]) => operator !== 'EQUAL').map(([field]) => field),
    ...order,
  ]);
  const wanted = [...rest].filter((field) => !equal.has(field));
  const head = new Set(fields.slice(0, equal.size));
  return (
    fields.length === equal.size + wanted.length &&
    [...equal].every((field) => head.has(field)) &&
    wanted.every((field, position) => fields[equal.size + position] === field)
  );
};

/** Queries that Firestore would refuse in production; its emulator refuses none. */
export const indexFindings = (
  plan: readonly PlannedResource[],
  shapes: readonly QueryShape[],
): readonly string[] => {
  const given = withoutIndex(plan);
  const composites = ofType(plan, 'google_firestore_index').map(({ change }) =>
    indexSchema.parse(change.after),
  );
  return shapes.flatMap((shape) => {
    const fields = new Set([...shape.filters.map(([field]) => field), ...shape.order]);
    const named = composites
      .filter(({ collection }) => collection === shape.collection)
      .map((one) => one.fields.map(({ field_path: field }) => field).filter((field) => field !== '__name__'));
    const what = `a query of ${shape.collection} by ${[...fields].join(', ')}`;
    if (fields.size > 1) return named.some((index) => serves(index, shape)) ? [] : [`${what} has no index`];
    return [...fields]
      .filter((field) => given.has(`${shape.collection}.${field}`))
      .map(() => `${what} has no index, since that field has none`);
  });
};

const objectSchema = z.object({ name: z.string() });

/** Code whose name does not change with its content is never deployed anew. */
export const codeFindings = (plan: readonly PlannedResource[]): readonly string[] =>
  ofType(plan, 'google_storage_bucket_object')
    .filter(({ change }) => !/-[0-9a-f]{64}\.zip$/.test(objectSchema.parse(change.after).name))
    .map(({ address }) => `${address} does not carry the hash of its content in its name`);

const databaseSchema = z.object({ deletion_policy: z.string(), delete_protection_state: z.string() });

/** A database that is abandoned though it could be deleted meets the next apply, one that is protected stops a destroy. */
export const databaseFindings = (plan: readonly PlannedResource[]): readonly string[] =>
  ofType(plan, 'google_firestore_database').flatMap(({ address, change }) => {
    const { deletion_policy: policy, delete_protection_state: state } = databaseSchema.parse(change.after);
    const isKept = state === 'DELETE_PROTECTION_ENABLED';
    return isKept === (policy === 'ABANDON') ? [] : [`${address} is ${state}, but ${policy} on destroy`];
  });

const ingressSchema = z.object({
  build_config: z.tuple([z.object({ entry_point: z.string() })]),
  service_config: z.tuple([z.object({ ingress_settings: z.string() })]),
});

/** Functions that can be reached from where nobody should call them; `open` names those that the internet may reach. */
export const ingressFindings = (
  plan: readonly PlannedResource[],
  open: readonly string[],
): readonly string[] =>
  ofType(plan, 'google_cloudfunctions2_function').flatMap(({ change }) => {
    const { build_config: build, service_config: service } = ingressSchema.parse(change.after);
    const name = build[0].entry_point;
    const wanted = open.includes(name) ? 'ALLOW_ALL' : 'ALLOW_INTERNAL_ONLY';
    const ingress = service[0].ingress_settings;
    return ingress === wanted ? [] : [`function ${name} has the ingress ${ingress} instead of ${wanted}`];
  });

const INVOKER =
  /^module\.(?:function\["(\w+)"\]|(\w+))\.google_cloud_run_v2_service_iam_member\.invoker\["(.*)"\]$/;

/** Callers by function, as their bindings are called, that are not the wanted ones. */
export const invokerFindings = (
  plan: readonly PlannedResource[],
  wanted: Readonly<Record<string, readonly string[]>>,
): readonly string[] => {
  const found = new Map<string, string[]>();
  const strange: string[] = [];
  for (const { address, type } of plan) {
    const [matched, inMap, alone, caller] = INVOKER.exec(address) ?? [];
    const name = inMap ?? alone;
    if (matched && name && caller) found.set(name, [...(found.get(name) ?? []), caller]);
    else if (type.startsWith('google_cloud_run_'))
      strange.push(`${address} is no binding of a caller that is known here`);
  }
  const names = new Set([...found.keys(), ...Object.keys(wanted)]);
  return strange.concat(
    [...names].flatMap((name) => {
      const [has, should] = [(found.get(name) ?? []).toSorted(), (wanted[name] ?? []).toSorted()];
      return has.join() === should.join()
        ? []
        : [`${name} may be called by ${has.join()}, not by ${should.join()}`];
    }),
  );
};

/** What a plan right after an apply would change. */
export const repeatFindings = (plan: readonly PlannedResource[]): readonly string[] =>
  plan
    .filter(({ change }) => !change.actions.every((action) => action === 'no-op' || action === 'read'))
    .map(({ address, change }) => `${address}: ${change.actions.join('/')} in a plan right after an apply`);

const jobSchema = z.object({
  http_target: z.tuple([
    z.object({ uri: z.string(), oidc_token: z.tuple([z.object({ audience: z.string() })]) }),
  ]),
});
const pushSchema = z.object({
  push_config: z.tuple([
    z.object({ push_endpoint: z.string(), oidc_token: z.tuple([z.object({ audience: z.string() })]) }),
  ]),
});

/** Calls whose token is made out to somebody else than the function that they go to; needs a plan after an apply. */
export const audienceFindings = (plan: readonly PlannedResource[]): readonly string[] => {
  const uris = new Set(
    ofType(plan, 'google_cloudfunctions2_function').map(
      ({ change }) =>
        z.object({ service_config: z.tuple([z.object({ uri: z.string() })]) }).parse(change.after)
          .service_config[0].uri,
    ),
  );
  const calls = [
    ...ofType(plan, 'google_cloud_scheduler_job').map(({ address, change }) => {
      const [target] = jobSchema.parse(change.after).http_target;
      return { address, url: target.uri, audience: target.oidc_token[0].audience };
    }),
    ...ofType(plan, 'google_pubsub_subscription').flatMap(({ address, change }) => {
      const parsed = pushSchema.safeParse(change.after);
      if (!parsed.success) return [];
      const [push] = parsed.data.push_config;
      return [{ address, url: push.push_endpoint, audience: push.oidc_token[0].audience }];
    }),
  ];
  return calls
    .filter(({ url, audience }) => !uris.has(audience) || !url.startsWith(`${audience}/`))
    .map(({ address, url, audience }) => `${address} calls ${url} with a token for ${audience}`);
};
