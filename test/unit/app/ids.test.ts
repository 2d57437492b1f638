import { expect, it } from 'vitest';

import { systemIds } from '#shared/app/ids.ts';

it('tokens are 128 bits in hex, each another one, however many are drawn', () => {
  const tokens = Array.from({ length: 2_000 }, () => systemIds.token());
  expect(new Set(tokens).size).toBe(2_000);
  expect(tokens.every((token) => /^[0-9a-f]{32}$/.test(token))).toBe(true);
});
