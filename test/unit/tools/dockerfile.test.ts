import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

const text = readFileSync(join(import.meta.dirname, '../../../functions/watcher/Dockerfile'), 'utf8');
const lines = text
  .split('\n')
  .map((line) => line.trim())
  .filter((line) => line !== '' && !line.startsWith('#'));
const of = (instruction: string): readonly string[] =>
  lines
    .filter((line) => line.startsWith(`${instruction} `))
    .map((line) => line.slice(instruction.length + 1));

test('the image of the watcher has Node.js and the bundle in it, and nothing else', () => {
  expect(of('COPY')).toEqual(['index.js package.json ./']);
  expect(['RUN', 'ADD'].flatMap(of)).toEqual([]);
  expect(of('CMD')).toEqual(['["index.js"]']);
});

test('its base can be named by digest, and is no moving "latest"', () => {
  const [base = ''] = of('ARG');
  expect(of('FROM')).toEqual(['${BASE}']);
  expect(base).toMatch(/^BASE=[\w.-]+(?:\/[\w.-]+)+:\w[\w.-]*$/);
  expect(base).toContain('nodejs24');
  expect(base).not.toContain(':latest');
});

test('it runs as the user that the Deployment names, and as no other', () => {
  const deployment = readFileSync(
    join(import.meta.dirname, '../../../terraform/cluster/watcher.yaml'),
    'utf8',
  );
  const [user = ''] = of('USER');
  expect(user).toBe('65532:65532');
  expect(deployment).toContain('runAsUser: 65532');
  expect(deployment).toContain('runAsGroup: 65532');
});
