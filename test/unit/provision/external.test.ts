import { describe, expect, it } from 'vitest';

import { NOW, external, externalDesired, facts, inputs } from './builders.ts';
import { conditionOf, kinds, planOf, reasonOf, stepOf, writtenBy } from './plans.ts';

const never = (): never => {
  throw new Error('there should be one');
};

describe('External', () => {
  it('is published as it is given, and probed', () => {
    const { record: _none, ...observation } = external();
    const plan = planOf(observation);
    expect(kinds(plan)).toEqual(['writeRecord', 'requestProbe']);
    expect(writtenBy(plan)?.serving?.endpoint).toMatchObject({ host: 'proxy.example.net', instanceId: '' });
    expect(reasonOf(plan, 'Provisioned')).toBe('External');
    expect(plan.status).not.toHaveProperty('ip');
  });

  it('starts from zero when its endpoint is edited, in one write, old verdict left behind (N4)', () => {
    const plan = planOf(external({ proxy: facts({ desired: externalDesired('other.example.net') }) }));
    expect(kinds(plan)).toEqual(['writeRecord', 'requestProbe']);
    expect(writtenBy(plan)?.serving).toMatchObject({
      endpoint: { id: 'fresh', host: 'other.example.net' },
      verdict: { state: 'Unknown' },
    });
    expect(writtenBy(plan)?.draining).toEqual([]);
    expect(plan.status?.host).toBe('other.example.net');
  });

  it('keeps its verdict when something else is edited', () => {
    const desired = { ...externalDesired(), maxLeases: 9 };
    const plan = planOf(external({ proxy: facts({ desired }) }));
    expect(writtenBy(plan)?.serving?.verdict.state).toBe('Healthy');
  });

  it('starts from zero when its credentials change', () => {
    const plan = planOf(external({ inputs: inputs({ hash: '', credentialsVersion: 'v2' }) }));
    expect(writtenBy(plan)?.serving?.endpoint).toMatchObject({ id: 'fresh', credentialsVersion: 'v2' });
  });

  it.each(['127.0.0.1', '10.1.2.3', '::1', 'fd00::1', 'localhost'])(
    'is refused at %s unless the operator allows it (idea 13)',
    (host) => {
      const proxy = facts({ desired: externalDesired(host) });
      const plan = planOf(external({ proxy }));
      expect(writtenBy(plan)).not.toHaveProperty('serving');
      expect(reasonOf(plan, 'Provisioned')).toBe('EndpointRefused');
      expect(conditionOf(plan, 'Stalled')?.status).toBe('True');
      expect(writtenBy(plan)?.wakeAt, 'the operator may change it (B3)').toBeGreaterThan(NOW);
      const allowed = planOf(external({ proxy, allowPrivateEndpoints: true }));
      expect(writtenBy(allowed)?.serving?.endpoint.host).toBe(host);
    },
  );

  it('that moved while its Secret is in trouble has the old endpoint withdrawn', () => {
    const plan = planOf(
      external({
        proxy: facts({ desired: externalDesired('other.example.net') }),
        inputs: { kind: 'trouble', reason: 'SecretMissing', message: 'm', judged: true, secretVersions: {} },
      }),
    );
    expect(writtenBy(plan)).not.toHaveProperty('serving');
  });

  it('removes the credentials of an endpoint that is not published any more', () => {
    const observation = external();
    const record = { ...(observation.record ?? never()), credentials: ['gone'] };
    const plan = planOf({ ...observation, record });
    expect(stepOf(plan, 'removeCredentials')?.endpointIds).toEqual(['gone']);
    expect(writtenBy(plan)?.credentials).toEqual([]);
  });
});
