import { describe, expect, test } from 'vitest';

import { parseConfig } from '#shared/app/config.ts';

import { configSchema, limitsOf } from '../../../functions/gc/config.ts';

const REQUIRED = { GOOGLE_CLOUD_PROJECT: 'project', INSTALLATION_ID: 'prod', PROXY_NAMESPACES: 'crawlers' };

describe('configuration of gc', () => {
  test('without an installation id it refuses to start (B2, row 80)', () => {
    const { INSTALLATION_ID: _, ...rest } = REQUIRED;
    expect(() => parseConfig(configSchema, rest)).toThrow(/INSTALLATION_ID: is required/);
  });

  test('names every problem in one message', () => {
    const env = { INSTALLATION_ID: 'P', PROVIDERS: 'gcp,azure', GC_MAX_DELETIONS: '-1' };
    expect(() => parseConfig(configSchema, env)).toThrow(
      /GOOGLE_CLOUD_PROJECT[^]*INSTALLATION_ID[^]*PROXY_NAMESPACES[^]*PROVIDERS: may only name gcp, kubernetes[^]*GC_MAX_DELETIONS/,
    );
  });

  test('waits ten minutes, sees twice, deletes ten at most, unless told otherwise (K6)', () => {
    const limits = limitsOf(parseConfig(configSchema, REQUIRED));
    expect(limits).toMatchObject({ minAgeMs: 600_000, sightingGapMs: 120_000, maxDeletions: 10 });
  });
});
