import { expect, it } from 'vitest';

import { parseConfig } from '#shared/app/config.ts';

import { configSchema } from '../../../functions/discovery/config.ts';

const ENV = { GOOGLE_CLOUD_PROJECT: 'p', INSTALLATION_ID: 'prod', PROXY_NAMESPACES: 'a,b' };

it('needs the project, the installation and its namespaces, and names all that is missing (B2, row 80)', () => {
  expect(parseConfig(configSchema, ENV)).toMatchObject({
    PROXY_NAMESPACES: ['a', 'b'],
    CREDENTIALS_DATABASE: 'credentials',
    LEASE_TTL_DEFAULT_SECONDS: 300,
  });
  expect(() => parseConfig(configSchema, {})).toThrow(
    /GOOGLE_CLOUD_PROJECT.*INSTALLATION_ID.*PROXY_NAMESPACES/s,
  );
});

it('refuses a default lease outside its limits', () => {
  expect(() => parseConfig(configSchema, { ...ENV, LEASE_TTL_DEFAULT_SECONDS: '5' })).toThrow(
    /LEASE_TTL_DEFAULT_SECONDS: must lie between/,
  );
});
