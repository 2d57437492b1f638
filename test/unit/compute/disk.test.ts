import { describe, expect, test } from 'vitest';

import { leftoverOf } from '#shared/compute/disk.ts';

const ZONE = 'https://www.googleapis.com/compute/v1/projects/p/zones/europe-west1-b';
const disk = (change: object = {}) => ({
  id: '9223372036854775001',
  name: 'prod-x-1',
  zone: ZONE,
  labels: { 'egress-installation': 'prod', 'egress-proxy-uid': 'u' },
  users: [],
  ...change,
});

describe('a disk without a machine', () => {
  test('is told with its own id and by whose labels it is', () => {
    expect(leftoverOf(disk())).toEqual({
      id: '9223372036854775001',
      name: 'prod-x-1',
      zone: 'europe-west1-b',
      installation: 'prod',
      uid: 'u',
    });
  });

  test('that nobody labelled is nobody’s', () => {
    const bare = { id: '9223372036854775001', name: 'prod-x-1', zone: 'europe-west1-b' };
    expect(leftoverOf(disk({ labels: {} }))).toEqual(bare);
    expect(leftoverOf(disk({ labels: null, users: null }))).toEqual(bare);
  });

  test.each([
    ['2026-11-30T04:00:00.500-08:00', Date.parse('2026-11-30T12:00:00.500Z')],
    ['2026-11-30T12:00:00Z', Date.parse('2026-11-30T12:00:00Z')],
    ['yesterday', undefined],
    ['', undefined],
    [null, undefined],
  ])('was created at the time, with its offset, that is in %s', (creationTimestamp, createdAt) => {
    expect(leftoverOf(disk({ creationTimestamp }))?.createdAt).toBe(createdAt);
  });

  test.each(['', null, undefined])('is none of ours when it is in a region (its zone is %o)', (zone) => {
    expect(leftoverOf(disk({ zone }))).toBeUndefined();
  });

  test('is none while something uses it', () => {
    expect(leftoverOf(disk({ users: [`${ZONE}/instances/other`] }))).toBeUndefined();
  });

  test.each([
    ['nothing', undefined],
    ['text', 'x'],
    ['no id', { name: 'x', zone: 'z' }],
  ])('cannot be read from %s, and nothing is concluded', (_, reply) => {
    expect(() => leftoverOf(reply)).toThrow(expect.objectContaining({ code: 'Transient' }));
  });
});
