/** What people want of the Proxies, and since when: the side that the world is compared with. */

import { z } from 'zod';

import { callApi } from '#test/services/api.ts';
import { gcpSpec, type World } from '#test/e2e/world.ts';

import type { Random } from './random.ts';

const MACHINE_TYPES = ['e2-micro', 'e2-small', 'e2-medium'] as const;
export const ZONES = ['europe-west1-b', 'europe-west1-c'] as const;

export interface Slot {
  readonly name: string;
  uid: string;
  phase: 'absent' | 'present' | 'deleting';
  machineType: string;
  revision: string;
  maxLeases: number;
  cordoned: boolean;
  strategy: 'RollingUpdate' | 'Recreate';
  zones: readonly string[];
  withSecrets: boolean;
  /** Times (ms) at which something happened that may end its machine, by what it was. */
  readonly reasons: { readonly at: number; readonly why: string }[];
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface Fleet {
  readonly slots: readonly Slot[];
  credentials(): Credentials;
  create(slot: Slot): Promise<void>;
  /** A change that is worth another machine. */
  editMachine(slot: Slot): Promise<void>;
  /** A change that is not. */
  editRest(slot: Slot): Promise<void>;
  remove(slot: Slot): Promise<void>;
  /** Somebody deletes it and takes its finalizers away. */
  bypass(slot: Slot): Promise<void>;
  /** Something else has happened to it that may end its machine. */
  note(slot: Slot, why: string): void;
  /** New credentials, for all that use them. */
  changeSecret(): Promise<void>;
  /** Takes the Secret away, or gives it back. */
  hideSecret(hidden: boolean): Promise<void>;
  ofUid(uid: string): Slot | undefined;
}

const uidSchema = z.looseObject({ metadata: z.looseObject({ uid: z.string() }) });

const SECRET = 'chaos-credentials';

const specOf = (slot: Slot): Record<string, unknown> => ({
  ...gcpSpec({ gcp: undefined }),
  maxLeases: slot.maxLeases,
  cordoned: slot.cordoned,
  drainTimeoutSeconds: 4,
  // A probe that is slow because this machine is busy says nothing about the proxy.
  healthCheck: { timeoutSeconds: 20 },
  revision: slot.revision,
  updateStrategy: { type: slot.strategy },
  ...(slot.withSecrets ? { credentialsSecretRef: { name: SECRET } } : {}),
  gcp: {
    zones: slot.zones,
    machineType: slot.machineType,
    image: 'projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64',
  },
});

const freshSlot = (index: number): Slot => ({
  name: `px-${index}`,
  uid: '',
  phase: 'absent',
  machineType: 'e2-micro',
  revision: '',
  maxLeases: 3,
  cordoned: false,
  strategy: 'RollingUpdate',
  zones: ZONES,
  withSecrets: index % 3 === 0,
  reasons: [],
});

export const makeFleet = (world: World, count: number, random: Random): Fleet => {
  const slots = Array.from({ length: count }, (_, index) => freshSlot(index));
  const byUid = new Map<string, Slot>();
  let version = 0;
  const credentials = (): Credentials => ({ username: 'crawler', password: `secret-${version}` });

  const note = (slot: Slot, why: string): void => void slot.reasons.push({ at: Date.now(), why });
  const apply = async (slot: Slot): Promise<void> => {
    await world.apply(slot.name, specOf(slot), { pool: `pool-${slot.maxLeases % 2}` });
  };
  const writeSecret = async (labelled: boolean): Promise<void> => {
    const answer = await callApi(
      world.api,
      `/api/v1/namespaces/${world.namespace}/secrets/${SECRET}?fieldManager=chaos&force=true`,
      {
        method: 'PATCH',
        contentType: 'application/apply-patch+yaml',
        body: {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: {
            name: SECRET,
            namespace: world.namespace,
            labels: labelled ? { 'crawl.example.com/credentials': 'true' } : {},
          },
          stringData: { ...credentials() },
        },
      },
    );
    if (answer.status >= 300) throw new Error(`secret: ${JSON.stringify(answer.body)}`);
  };
  const ofSecret = (): readonly Slot[] => slots.filter(({ withSecrets }) => withSecrets);

  const path = ({ name }: Slot): string =>
    `/apis/crawl.example.com/v1alpha1/namespaces/${world.namespace}/proxies/${name}`;

  return {
    slots,
    credentials,
    note,
    ofUid: (uid) => byUid.get(uid),
    async create(slot) {
      note(slot, 'created');
      await apply(slot);
      const { metadata } = uidSchema.parse((await callApi(world.api, path(slot))).body);
      Object.assign(slot, { uid: metadata.uid, phase: 'present' });
      byUid.set(metadata.uid, slot);
    },
    async editMachine(slot) {
      note(slot, 'machine edited');
      if (random.chance(0.5)) Object.assign(slot, { machineType: random.pick(MACHINE_TYPES) });
      else Object.assign(slot, { revision: `r${random.int(3)}` });
      await apply(slot);
      note(slot, 'machine edited');
    },
    async editRest(slot) {
      const change = random.pick([
        { maxLeases: 1 + random.int(5) },
        { cordoned: !slot.cordoned },
        { zones: random.shuffled(ZONES) },
        { strategy: random.chance(0.3) ? ('Recreate' as const) : ('RollingUpdate' as const) },
      ]);
      Object.assign(slot, change);
      await apply(slot);
    },
    async remove(slot) {
      note(slot, 'deleted');
      await world.remove(slot.name);
      Object.assign(slot, { phase: 'deleting' });
    },
    async bypass(slot) {
      note(slot, 'taken away');
      Object.assign(slot, { phase: 'deleting' });
      await world.remove(slot.name);
      await callApi(world.api, path(slot), {
        method: 'PATCH',
        body: { metadata: { finalizers: [] } },
        contentType: 'application/merge-patch+json',
      });
    },
    async changeSecret() {
      version += 1;
      for (const slot of ofSecret()) note(slot, 'credentials changed');
      await writeSecret(true);
    },
    async hideSecret(hidden) {
      for (const slot of ofSecret()) note(slot, 'secret label changed');
      await writeSecret(!hidden);
    },
  };
};
