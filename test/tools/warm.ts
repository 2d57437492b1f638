/**
 * Part of every function's zip. The platform runs it when it builds the image, with the Node.js that will run the function:
 * it compiles every file once and keeps the result, so that no start has to. Without that, starts are slower; so it never fails.
 */

import { readdir } from 'node:fs/promises';
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';

const FOLDER = import.meta.dirname;

const compile = async (file: string): Promise<void> => {
  try {
    await import(join(FOLDER, file));
  } catch {
    // Without its configuration a function does not start; it has been compiled all the same.
  }
};

enableCompileCache(join(FOLDER, '.compile-cache'));
for (const file of await readdir(FOLDER)) {
  if (/^(?!(?:index|warm)\.).*\.mjs$/.test(file)) await compile(file);
}
flushCompileCache();
process.exit(0);
