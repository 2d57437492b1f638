/** Who has which role on what, in full: a binding more or less than these is a decision, not an accident. */

import { z } from 'zod';

import type { PlannedResource } from './plan.ts';

/** Roles of Google's by the address of their binding; `own` stands for a role of the module, whose permissions are in iam.tf. */
export const RIGHTS: Readonly<Record<string, string>> = {
  'google_project_iam_member.build["roles/artifactregistry.writer"]': 'roles/artifactregistry.writer',
  'google_project_iam_member.build["roles/logging.logWriter"]': 'roles/logging.logWriter',
  'google_project_iam_member.build["roles/storage.objectViewer"]': 'roles/storage.objectViewer',
  'google_project_iam_member.database["provision-main"]': 'roles/datastore.user',
  'google_project_iam_member.database["health-main"]': 'roles/datastore.user',
  'google_project_iam_member.database["discovery-main"]': 'roles/datastore.user',
  'google_project_iam_member.database["gc-main"]': 'roles/datastore.user',
  'google_project_iam_member.database["provision-credentials"]': 'roles/datastore.user',
  'google_project_iam_member.database["health-credentials"]': 'roles/datastore.user',
  'google_project_iam_member.database["discovery-credentials"]': 'roles/datastore.user',
  'google_project_iam_member.cluster["provision"]': 'own',
  'google_project_iam_member.cluster["gc"]': 'own',
  'google_project_iam_member.machines["provision"]': 'own',
  'google_project_iam_member.machines["gc"]': 'own',
  'google_project_iam_member.fleet["provision"]': 'own',
  'google_project_iam_member.fleet["gc"]': 'own',
  'google_compute_subnetwork_iam_member.provision["europe-west1/default"]': 'own',
  'google_pubsub_topic_iam_member.dead_letters["changes"]': 'roles/pubsub.publisher',
  'google_pubsub_topic_iam_member.dead_letters["probes"]': 'roles/pubsub.publisher',
  'google_pubsub_subscription_iam_member.dead_letters["changes"]': 'roles/pubsub.subscriber',
  'google_pubsub_subscription_iam_member.dead_letters["probes"]': 'roles/pubsub.subscriber',
  'google_pubsub_topic_iam_member.publisher["provision-changes"]': 'roles/pubsub.publisher',
  'google_pubsub_topic_iam_member.publisher["health-changes"]': 'roles/pubsub.publisher',
  'google_pubsub_topic_iam_member.publisher["gc-changes"]': 'roles/pubsub.publisher',
  'google_pubsub_topic_iam_member.publisher["watcher-changes"]': 'roles/pubsub.publisher',
  'google_pubsub_topic_iam_member.publisher["provision-probes"]': 'roles/pubsub.publisher',
  'google_pubsub_topic_iam_member.publisher["discovery-probes"]': 'roles/pubsub.publisher',
};

const binding = z.object({ role: z.string().nullish(), condition: z.array(z.unknown()).nullish() });

/** What is bound on the whole project, and must be narrowed to what is ours. */
const CONDITIONAL = /^google_project_iam_member\.(?:database|machines)\[/;

/** Bindings other than the wanted ones, and ones without their condition. Who calls which function is judged apart. */
export const rightsFindings = (
  plan: readonly PlannedResource[],
  wanted: Readonly<Record<string, string>>,
): readonly string[] => {
  const bindings = new Map(
    plan
      .filter(
        ({ type }) => /_iam_(?:member|binding|policy)$/.test(type) && !type.startsWith('google_cloud_run_'),
      )
      .map(({ address, change }) => [address, binding.parse(change.after)]),
  );
  const addresses = new Set([...bindings.keys(), ...Object.keys(wanted)]);
  return [...addresses].flatMap((address) => {
    const [found, role] = [bindings.get(address), wanted[address]];
    if (!found) return [`${address} is missing`];
    if (role === undefined) return [`${address} grants ${found.role ?? 'a role'} that nobody asked for`];
    if (role !== 'own' && found.role !== role)
      return [`${address} grants ${String(found.role)} instead of ${role}`];
    const isNarrow = (found.condition ?? []).length > 0;
    return CONDITIONAL.test(address) && !isNarrow ? [`${address} holds for the whole project`] : [];
  });
};
