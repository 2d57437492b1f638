/**
 * A CommonJS package that is imported dynamically gets a file of its own, which has but a default export: esbuild does not
 * know the names. They are looked up here, and exported by name as Node.js does it.
 */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';

import type { Plugin } from 'esbuild';
import { z } from 'zod';

const manifestSchema = z.object({ type: z.string().optional() });
const NAMESPACE = 'named-imports';
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** The `type` that the nearest package.json gives to `.js` files in `folder`. */
const typeOf = async (folder: string): Promise<string> => {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined);
  if (text !== undefined) return manifestSchema.parse(JSON.parse(text)).type ?? 'commonjs';
  return folder === dirname(folder) ? 'commonjs' : typeOf(dirname(folder));
};

const isCommonJs = async (path: string): Promise<boolean> => {
  const kind = extname(path);
  return kind === '.cjs' || (kind === '.js' && (await typeOf(dirname(path))) === 'commonjs');
};

const exportsOf = (path: string): readonly string[] => {
  const exported: unknown = createRequire(import.meta.url)(path);
  const names = typeof exported === 'object' && exported !== null ? Object.keys(exported) : [];
  return names.filter((name) => IDENTIFIER.test(name) && name !== 'default');
};

export const namedImports = (): Plugin => ({
  name: NAMESPACE,
  setup: (build) => {
    // Names of packages: what begins with a dot or a slash, or is a subpath import of our own, is a file that esbuild knows.
    build.onResolve({ filter: /^[@\w]/ }, async ({ kind, path, resolveDir, importer, pluginData }) => {
      if (kind !== 'dynamic-import' || pluginData === NAMESPACE) return undefined;
      const found = await build.resolve(path, { kind, resolveDir, importer, pluginData: NAMESPACE });
      if (found.external || found.errors.length > 0 || !(await isCommonJs(found.path))) return found;
      return { path: found.path, namespace: NAMESPACE };
    });
    build.onLoad({ filter: /./, namespace: NAMESPACE }, ({ path }) => ({
      contents: [
        `import * as all from ${JSON.stringify(path)};`,
        `export default all.default;`,
        `export const { ${exportsOf(path).join(', ')} } = all;`,
      ].join('\n'),
      resolveDir: dirname(path),
    }));
  },
});
