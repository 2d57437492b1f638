/** Pods that the cluster does not take, or that cannot start. */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { systemClock as clock } from '#shared/app/clock.ts';
import { makeLog } from '#shared/app/log.ts';
import { openPodProvider } from '#shared/kubernetes/pods/provider.ts';
import { machineSpec } from '#test/compute/builders.ts';
import { callApi } from '#test/services/api.ts';

import { openLink, startPods } from '../pods/fixture.ts';
import { KUBERNETES, api } from '../proxies.ts';
import { condition } from './fixture.ts';
import { startPodWorld, type PodWorld } from './pod-world.ts';

const WITHIN = { timeout: 60_000 };

let world: PodWorld;

beforeAll(async () => {
  world = await startPodWorld();
});
afterAll(() => world.stop());

const done = async (answer: ReturnType<typeof callApi>): Promise<void> => {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`${status}: ${JSON.stringify(body)}`);
};

const TRIED = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'tried' },
  spec: { containers: [{ name: 'a', image: 'a' }] },
};

/** It takes a moment until the API server knows a rule, and again until it knows it no more. */
const untilPodsAre = (what: 'taken' | 'refused'): Promise<unknown> =>
  vi.waitUntil(async () => {
    const { status } = await callApi(api(), `${world.path('pods')}?dryRun=All`, {
      method: 'POST',
      body: TRIED,
    });
    return what === (status < 300 ? 'taken' : 'refused');
  }, WITHIN);

describe('a Pod that the cluster refuses', () => {
  test('for a quota of the namespace: said so, tried again by itself', async () => {
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few' } };
    const hard = { pods: '0' };
    await done(
      callApi(api(), world.path('resourcequotas'), { method: 'POST', body: { ...quota, spec: { hard } } }),
    );
    // The controller that would say so is not part of this control plane.
    await done(
      callApi(api(), world.path('resourcequotas/few/status'), {
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { status: { hard, used: { pods: '0' } } },
      }),
    );
    const name = await world.provision.apply(KUBERNETES);
    try {
      expect(await world.nudge(name)).toMatchObject({ status: 204 });
    } finally {
      await done(callApi(api(), world.path('resourcequotas/few'), { method: 'DELETE' }));
      await untilPodsAre('taken');
    }
    const told = condition(await world.provision.get(name), 'Provisioned');
    expect(told).toMatchObject({ status: 'False', reason: 'QuotaExceeded' });
    expect(told?.message).toMatch(/exceeded quota: few.*raise the quota/su);
    expect(condition(await world.provision.get(name), 'Stalled')?.status).toBe('False');
    expect((await world.provision.record(name))?.wakeAt).toBeLessThanOrEqual(Date.now() + 60_000);
    await world.removed(name);
  }, 120_000);

  test.each(['Forbidden', 'Invalid'])(
    'by a rule of admission that answers %s: asked of a person, with its words',
    async (reason) => {
      const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
      const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
      const { namespace } = world.provision;
      const policy = `no-pods-${namespace}-${reason.toLowerCase()}`;
      const kind = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: policy } };
      const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
      const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
      const matchConstraints = { namespaceSelector, resourceRules: [rule] };
      const validations = [{ expression: 'false', message: 'images come from our registry only', reason }];
      await done(
        callApi(api(), policies, {
          method: 'POST',
          body: { ...kind, kind: 'ValidatingAdmissionPolicy', spec: { matchConstraints, validations } },
        }),
      );
      await done(
        callApi(api(), bindings, {
          method: 'POST',
          body: {
            ...kind,
            kind: 'ValidatingAdmissionPolicyBinding',
            spec: { policyName: policy, validationActions: ['Deny'] },
          },
        }),
      );
      try {
        await untilPodsAre('refused');
        const name = await world.provision.apply(KUBERNETES);
        expect(await world.nudge(name)).toMatchObject({ status: 204 });
        const told = condition(await world.provision.get(name), 'Provisioned');
        expect(told).toMatchObject({ status: 'False', reason: 'InvalidSpec' });
        expect(told?.message).toMatch(/images come from our registry only.*Correct the spec, or the rule/su);
        expect(condition(await world.provision.get(name), 'Stalled')?.status).toBe('True');
        await world.removed(name);
      } finally {
        await callApi(api(), `${policies}/${policy}`, { method: 'DELETE' });
        await callApi(api(), `${bindings}/${policy}`, { method: 'DELETE' });
        await untilPodsAre('taken');
      }
    },
    120_000,
  );

  test('not by the restricted Pod Security Standard: that is what every Pod of ours keeps to', async () => {
    const own = await startPods();
    const ours = own.provider('prod');
    try {
      await done(
        callApi(api(), `/api/v1/namespaces/${own.namespace}`, {
          method: 'PATCH',
          contentType: 'application/merge-patch+json',
          body: { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
        }),
      );
      const root = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'root' },
        spec: { containers: [{ name: 'a', image: 'a' }] },
      };
      const refused = await callApi(api(), `/api/v1/namespaces/${own.namespace}/pods`, {
        method: 'POST',
        body: root,
      });
      expect(JSON.stringify(refused.body)).toContain('violates PodSecurity');
      const ref = await own.owner();
      const spec = machineSpec('prod', { ref, kubernetes: KUBERNETES.kubernetes, userData: '#!/bin/sh\n' });
      await expect(ours.create(spec, own.namespace, ref.uid)).resolves.toMatchObject({ zone: own.namespace });
    } finally {
      await own.stop();
    }
  }, 120_000);
});

test('a Pod whose Secret was never made waits and says so, and is replaced by one that has its own', async () => {
  const link = openLink('provision');
  const log = makeLog(() => undefined);
  const open = (ahead: number) =>
    openPodProvider(
      {
        installation: 'prod',
        namespaces: [world.provision.namespace],
        clock: { ...clock, now: () => clock.now() + ahead },
        log,
      },
      link,
    );
  const [now, later] = [open(0), open(31_000)];
  const name = await world.provision.apply({ ...KUBERNETES, cloudInit: { inline: '#!/bin/sh\ntrue\n' } });
  // It dies between the Pod and its Secret.
  link.loseNext('POST', /\/pods$/u);
  expect(await world.provision.nudge(name, { providers: { kubernetes: now } })).toMatchObject({
    status: 503,
  });
  const first = await world.podOf(name);
  await world.provision.nudge(name, { providers: { kubernetes: now }, limits: { budgetMs: 500 } });
  const told = condition(await world.provision.get(name), 'Provisioned');
  expect(told).toMatchObject({ status: 'False', reason: 'Creating' });
  expect(told?.message).toMatch(
    new RegExp(`Secret ${first.name}, which the Pod mounts, does not exist yet`, 'u'),
  );
  expect(await world.podsOf(name), 'it is waited for').toHaveLength(1);
  await world.provision.nudge(name, { providers: { kubernetes: later } });
  await world.nudge(name);
  const second = await world.podOf(name);
  expect(second.name).not.toBe(first.name);
  const files = world.pods.kubelet.control
    .pods()
    .find((each) => each.name !== first.name && each.files.includes('user-data'));
  expect(files?.listening).toBe(true);
  await now.close();
}, 120_000);
