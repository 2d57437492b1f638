import { describe, expect, it } from 'vitest';

import { isReserved } from '#shared/domain/address.ts';

describe('addresses of External endpoints', () => {
  it.each([
    '127.0.0.1',
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '169.254.169.254',
    '172.31.255.255',
    '192.168.1.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::10.0.0.1',
    '2002:a00:1::',
    'localhost',
    'a.localhost',
    'metadata.google.internal',
  ])('%s is reserved', (host) => {
    expect(isReserved(host)).toBe(true);
  });

  it.each([
    '8.8.8.8',
    '172.32.0.1',
    '100.128.0.1',
    '192.169.0.1',
    '203.0.113.7',
    '2001:4860:4860::8888',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
    'proxy.example.net',
    'internal.example.net',
  ])('%s is not', (host) => {
    expect(isReserved(host)).toBe(false);
  });
});
