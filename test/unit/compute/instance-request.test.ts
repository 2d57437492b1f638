import { describe, expect, test } from 'vitest';

import { instanceBody, regionOf } from '#shared/compute/instance-request.ts';
import { GCP_SPEC, machineSpec } from '#test/compute/builders.ts';
import { parseInstanceBody } from '#test/compute/instance-body.ts';

const context = { projectId: 'project-1', installation: 'prod', zone: 'europe-west1-b' };
const ref = { namespace: 'crawlers', name: 'a.b', uid: '0a1b2c3d-0000-4000-8000-00000000000f' };

const metadata = (body: ReturnType<typeof instanceBody>): Record<string, string> =>
  Object.fromEntries((body.metadata?.items ?? []).map(({ key, value }) => [key ?? '', value ?? '']));

describe('the body of a create call', () => {
  test('B2: carries the identity in labels of the machine and of its boot disk', () => {
    const body = instanceBody(machineSpec('prod', { ref }), context);
    const labels = {
      'egress-installation': 'prod',
      'egress-proxy-uid': ref.uid,
      'egress-proxy-hash': '0123456789abcdef',
    };
    expect(body.labels).toEqual(labels);
    expect(body.disks).toEqual([
      {
        boot: true,
        autoDelete: true,
        initializeParams: { sourceImage: GCP_SPEC.image, labels },
      },
    ]);
  });

  test('row 49: keeps the full reference of the Proxy, whatever characters it has', () => {
    expect(instanceBody(machineSpec('prod', { ref }), context).description).toBe('Proxy crawlers/a.b');
  });

  test('gives the machine no identity, no project keys, the tag of the firewall rule, and a shielded start', () => {
    const body = instanceBody(machineSpec('prod'), context);
    expect(body.serviceAccounts).toEqual([]);
    expect(body.tags).toEqual({ items: ['prod-proxy'] });
    expect(body.shieldedInstanceConfig).toEqual({
      enableSecureBoot: true,
      enableVtpm: true,
      enableIntegrityMonitoring: true,
    });
    expect(metadata(body)).toEqual({ 'block-project-ssh-keys': 'true', 'proxy-port': '3128' });
  });

  test('hands over user data and credentials as metadata', () => {
    const spec = machineSpec('prod', {
      port: 8080,
      userData: '#cloud-config',
      credentials: { username: 'crawler', password: 'pa55' },
    });
    expect(metadata(instanceBody(spec, context))).toMatchObject({
      'user-data': '#cloud-config',
      'proxy-port': '8080',
      'proxy-username': 'crawler',
      'proxy-password': 'pa55',
    });
  });

  test('asks for an external address only where the Proxy does', () => {
    const [outside] = instanceBody(machineSpec('prod'), context).networkInterfaces ?? [];
    expect(outside?.accessConfigs).toHaveLength(1);
    const spec = machineSpec('prod', { gcp: { ...GCP_SPEC, externalIP: 'None' } });
    const [inside] = instanceBody(spec, context).networkInterfaces ?? [];
    expect(inside).toEqual({ subnetwork: 'projects/project-1/regions/europe-west1/subnetworks/default' });
  });

  test('leaves a subnetwork alone that is a path', () => {
    const subnetwork = 'projects/host/regions/europe-west1/subnetworks/shared';
    const spec = machineSpec('prod', { gcp: { ...GCP_SPEC, subnetwork } });
    expect(instanceBody(spec, context).networkInterfaces?.[0]?.subnetwork).toBe(subnetwork);
  });

  test('row 45: a Spot machine stops when it is preempted, so that it stays visible', () => {
    const spec = machineSpec('prod', { gcp: { ...GCP_SPEC, provisioningModel: 'Spot' } });
    expect(instanceBody(spec, context).scheduling).toEqual({
      provisioningModel: 'SPOT',
      instanceTerminationAction: 'STOP',
      automaticRestart: false,
      onHostMaintenance: 'TERMINATE',
    });
  });

  test('is one that the API takes', () => {
    const spec = machineSpec('prod', { userData: 'x', credentials: { username: 'u', password: 'p' } });
    const sent: unknown = JSON.parse(JSON.stringify(instanceBody(spec, context)));
    expect(parseInstanceBody(sent, 'project-1', 'europe-west1-b').name).toBe(spec.name);
  });

  test.each([
    ['of 256 KiB and one byte', 'x'.repeat(256 * 1024 + 1)],
    ['of fewer characters but too many bytes', 'ü'.repeat(128 * 1024 + 1)],
  ])('row 50: user data %s is refused before the call, without repeating it', (_, userData) => {
    const make = (): unknown => instanceBody(machineSpec('prod', { userData }), context);
    expect(make).toThrow(expect.objectContaining({ code: 'InvalidSpec' }));
    expect(make).toThrow(/^Metadata user-data has 2621\d\d bytes; Compute Engine takes at most 262144\.$/u);
  });

  test('row 50: user data of exactly 256 KiB passes', () => {
    const userData = 'x'.repeat(256 * 1024);
    expect(metadata(instanceBody(machineSpec('prod', { userData }), context))['user-data']).toBe(userData);
  });

  test('a specification for another provider is refused', () => {
    const { gcp: _gcp, ...spec } = machineSpec('prod');
    expect(() => instanceBody(spec, context)).toThrow(expect.objectContaining({ code: 'InvalidSpec' }));
  });

  test('a zone names its region', () => {
    expect(regionOf('northamerica-northeast1-a')).toBe('northamerica-northeast1');
  });
});
