/** What an apply has left in the stand-in for Google's APIs and in the Pub/Sub emulator, against the code and the local stack. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';
import { z } from 'zod';

import { parseConfig } from '#shared/app/config.ts';
import type { Resource } from '#test/google-apis/world.ts';
import type { PushSubscription } from '#test/stack/subscriptions.ts';
import { FUNCTIONS } from '#test/tools/build.ts';

const functionResource = z.object({
  serviceConfig: z.object({
    uri: z.string(),
    serviceAccountEmail: z.string(),
    environmentVariables: z.record(z.string(), z.string()).default({}),
  }),
});

/** A deployed function: its URL, its identity, its environment. */
export type Deployed = z.infer<typeof functionResource>['serviceConfig'];

/** Functions of an installation by their short name. `prefix` is that of its names. */
export const deployedFunctions = (
  resources: ReadonlyMap<string, Resource>,
  prefix: string,
): ReadonlyMap<string, Deployed> =>
  new Map(
    [...resources]
      .filter(([key]) => key.startsWith('cloudfunctions/') && key.includes(`/functions/${prefix}`))
      .map(([key, resource]) => [
        key.slice(key.lastIndexOf('/') + 1 + prefix.length),
        functionResource.parse(resource).serviceConfig,
      ]),
  );

const configModule = z.object({ configSchema: z.instanceof(z.ZodObject) });

const startFinding = async (
  file: string,
  environment: Record<string, string>,
): Promise<readonly string[]> => {
  if (!existsSync(file)) return [];
  const loaded: unknown = await import(file);
  try {
    parseConfig(configModule.parse(loaded).configSchema, environment);
    return [];
  } catch (error) {
    return [`${file}: ${String(error)}`];
  }
};

/** Functions that would not start with the environment that they were deployed with. `folders` is that of the functions. */
export const startFindings = async (
  functions: ReadonlyMap<string, Deployed>,
  folders: string,
): Promise<readonly string[]> => {
  const findings = await Promise.all(
    FUNCTIONS.map(async (name) => {
      const deployed = functions.get(name);
      const file = join(folders, name, 'config.ts');
      return deployed ? startFinding(file, deployed.environmentVariables) : [`${name} is not deployed`];
    }),
  );
  return findings.flat();
};

const configMap = z.object({ data: z.record(z.string(), z.string()) });

/** The same of the watcher, whose environment is a ConfigMap. */
export const watcherFindings = (manifest: string, folders: string): Promise<readonly string[]> =>
  startFinding(join(folders, 'watcher', 'config.ts'), configMap.parse(parse(manifest)).data);

const subscription = z.object({
  name: z.string(),
  topic: z.string(),
  ackDeadlineSeconds: z.number(),
  enableMessageOrdering: z.boolean().default(false),
  retryPolicy: z.object({ minimumBackoff: z.string(), maximumBackoff: z.string() }),
  deadLetterPolicy: z.object({ deadLetterTopic: z.string(), maxDeliveryAttempts: z.number() }),
  pushConfig: z.object({ pushEndpoint: z.string() }),
});
const listed = z.object({ subscriptions: z.array(z.record(z.string(), z.unknown())).default([]) });

const wantedSubscription = (
  one: PushSubscription,
  functions: ReadonlyMap<string, Deployed>,
  name: (short: string) => string,
): z.infer<typeof subscription> => ({
  name: name(`subscriptions/${one.name}`),
  topic: name(`topics/${one.topic}`),
  ackDeadlineSeconds: one.ackDeadlineSeconds,
  enableMessageOrdering: one.ordered,
  retryPolicy: {
    minimumBackoff: `${one.retry.minimumSeconds}s`,
    maximumBackoff: `${one.retry.maximumSeconds}s`,
  },
  deadLetterPolicy: {
    deadLetterTopic: name(`topics/${one.deadLetterTopic}`),
    maxDeliveryAttempts: one.maxDeliveryAttempts,
  },
  pushConfig: { pushEndpoint: `${functions.get(one.target.function)?.uri ?? ''}${one.target.path}` },
});

const text = (list: readonly unknown[]): string =>
  list
    .map((one) => JSON.stringify(one))
    .toSorted()
    .join('\n');

export interface Installation {
  readonly projectId: string;
  /** Of its names. */
  readonly prefix: string;
}

/** Push subscriptions of an installation that the local stack has not, or has otherwise. `answer` is Pub/Sub's own list. */
export const deliveryFindings = (
  answer: unknown,
  { projectId, prefix }: Installation,
  local: readonly PushSubscription[],
  functions: ReadonlyMap<string, Deployed>,
): readonly string[] => {
  const name = (short: string): string => `projects/${projectId}/${short.replace('/', `/${prefix}`)}`;
  const found = listed
    .parse(answer)
    .subscriptions.map((one) => subscription.safeParse(one).data)
    .filter((one) => one?.name.includes(`/${prefix}`));
  const wanted = local.map((one) => wantedSubscription(one, functions, name));
  return text(found) === text(wanted)
    ? []
    : [`deployed:\n${text(found)}\nin the local stack:\n${text(wanted)}`];
};
