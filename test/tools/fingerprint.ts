/** A digest of files: equal when nothing that a build reads has changed. */

import { createHash } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';

const filesBelow = async (path: string): Promise<readonly string[]> => {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
};

/** Digest of names and contents of `paths` (files, or folders with all that is below them), seen from `root`. */
export const fingerprint = async (root: string, paths: readonly string[]): Promise<string> => {
  const files = (await Promise.all(paths.map((path) => filesBelow(join(root, path))))).flat().toSorted();
  const hash = createHash('sha256');
  for (const file of files) {
    const content = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    hash.update(`${relative(root, file)}\n${content}\n`);
  }
  return hash.digest('hex');
};
