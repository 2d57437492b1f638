import { defineConfig } from 'vitest/config';

const METADATA_OFF = { METADATA_SERVER_DETECTION: 'none' };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 10_000,
          // Modules do nothing when imported, so that files can share them; loading them again takes most of the time.
          isolate: false,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/integration/global-setup.ts'],
          env: METADATA_OFF,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          // They wait more than they work: with one for each core half of both is idle.
          maxWorkers: 3,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          env: METADATA_OFF,
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
