import { describe, expect, test } from 'vitest';

import { parseFilter } from '#test/compute/filter.ts';

const resource = { name: 'prod-1', status: 'RUNNING', labels: { 'egress-installation': 'prod', pool: 'a' } };

describe('the filters of the stand-in', () => {
  test.each([
    ['labels.egress-installation = "prod"', true],
    ['labels.egress-installation="prod"', true],
    ['labels.egress-installation = prod', true],
    ['labels.egress-installation = "pro"', false],
    ['labels.other = "prod"', false],
    ['labels.pool:*', true],
    ['labels.other:*', false],
    ['status != "RUNNING"', false],
    ['(status = "RUNNING") AND (labels.pool = "b")', false],
    ['(status = "RUNNING") (labels.pool = "a")', true],
    ['labels.pool = "b" OR labels.pool = "a"', true],
    ['NOT (labels.pool = "b")', true],
    ['name eq prod-.*', true],
    ['name ne prod-.*', false],
    ['', true],
  ])('%s gives %s', (filter, matches) => {
    expect(parseFilter(filter)(resource)).toBe(matches);
  });

  test.each([
    'labels.pool~a',
    'labels.pool = a b',
    'labels.pool = "a',
    '(labels.pool = "a"',
    'labels.pool = "a")',
    'labels.pool',
    'labels.pool == "a"',
    "labels.pool = 'a'",
    'status = "RUNNING" AND',
    'status = "RUNNING" AND name eq prod-.*',
    'labels.pool in ("a")',
  ])('row 48: %s is refused', (filter) => {
    expect(() => parseFilter(filter)).toThrow(/Invalid list filter expression/u);
  });
});
