/** Tables in terraform/README.md and COST.md: variables, outputs, who may do what in the cluster, costs. `--check` only compares. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { format, resolveConfig } from 'prettier';
import { z } from 'zod';

import { parseManifests } from '#test/services/api.ts';

import { readCounts } from './cost-counts.ts';
import { costTables } from './cost.ts';
import { parseBlocks, type Block } from './hcl-blocks.ts';

const MODULE = join(import.meta.dirname, '../../terraform');
/** Files with generated sections. */
export const DOCUMENTS = ['README.md', 'COST.md'];

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

const cell = (text: string): string => text.replaceAll('|', '\\|');

const inputs = (blocks: readonly Block[]): string =>
  table(
    ['variable', 'what', 'required, or its attributes and their defaults'],
    blocks
      .toSorted((a, b) => Number(b.required) - Number(a.required))
      .map(({ name, description, attributes, required }) => [
        `\`${name}\``,
        cell(description),
        cell(`${required ? '**required**; ' : ''}${attributes.join(', ')}`),
      ]),
  );

const outputs = (blocks: readonly Block[]): string =>
  table(
    ['output', 'what'],
    blocks.map(({ name, description }) => [`\`${name}\``, cell(description)]),
  );

const roleSchema = z.object({
  metadata: z.object({ name: z.string() }),
  rules: z.array(
    z.object({
      apiGroups: z.array(z.string()),
      resources: z.array(z.string()),
      resourceNames: z.array(z.string()).optional(),
      verbs: z.array(z.string()),
    }),
  ),
});
const bindingSchema = z.object({
  roleRef: z.object({ name: z.string() }),
  subjects: z.array(z.object({ name: z.string() })),
});

interface Right {
  readonly resource: string;
  readonly verb: string;
  readonly identity: string;
}

/** Every right that the files give, one per verb, resource and identity. `mark` is put behind each. */
const rightsIn = (text: string, mark: string): readonly Right[] => {
  const manifests = parseManifests(text);
  const roles = new Map(
    manifests
      .filter(({ kind }) => kind === 'ClusterRole')
      .map((manifest) => roleSchema.parse(manifest))
      .map(({ metadata, rules }) => [metadata.name, rules]),
  );
  const bindings = manifests.filter(({ kind }) => kind.endsWith('Binding'));
  return bindings.flatMap((manifest) => {
    const { roleRef, subjects } = bindingSchema.parse(manifest);
    const rules = roles.get(roleRef.name) ?? [];
    return subjects.flatMap(({ name: identity }) =>
      rules.flatMap(({ resources, resourceNames, verbs }) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => ({
            resource: resourceNames ? `${resource} (${resourceNames.join(', ')})` : resource,
            verb: `${verb}${mark}`,
            identity,
          })),
        ),
      ),
    );
  });
};

const IDENTITIES = ['watcher', 'provision', 'gc'];

const verbsOf = (rights: readonly Right[], name: string): string => {
  const verbs = rights.filter(({ identity }) => identity === name).map(({ verb }) => verb);
  return [...new Set(verbs)].toSorted().join(', ');
};

const rbac = (rights: readonly Right[]): string =>
  table(
    ['resource', ...IDENTITIES],
    [...Map.groupBy(rights, ({ resource }) => resource)]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([resource, those]) => [resource].concat(IDENTITIES.map((name) => verbsOf(those, name)))),
  );

const read = (file: string): Promise<string> => readFile(join(MODULE, file), 'utf8');

const sections = async (): Promise<ReadonlyMap<string, string>> => {
  const base = rightsIn(await read('cluster/rbac.yaml'), '');
  const pods = rightsIn(await read('cluster/kubernetes-provider/rbac-pods.yaml'), '\\*');
  return new Map([
    ['inputs', inputs(parseBlocks(await read('variables.tf')))],
    ['outputs', outputs(parseBlocks(await read('outputs.tf')))],
    ['rbac', rbac([...base, ...pods])],
    ['cost', costTables(await readCounts())],
  ]);
};

/** The text with each generated section that it has marks for. Throws when a mark lacks its other half, or has no section. */
export const withSections = (text: string, all: ReadonlyMap<string, string>): string => {
  let result = text;
  for (const [, name = ''] of text.matchAll(/^<!-- generated: (\w+) -->$/gm)) {
    const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const [from, to] = [result.indexOf(begin), result.indexOf(end)];
    const content = all.get(name);
    if (to < from || content === undefined) throw new Error(`the section ${name} is not as it should be`);
    result = `${result.slice(0, from + begin.length)}\n\n${content}\n\n${result.slice(to)}`;
  }
  return result;
};

/** A document as it should be. */
export const generateDocument = async (name: string): Promise<string> => {
  const file = join(MODULE, name);
  const text = withSections(await readFile(file, 'utf8'), await sections());
  return format(text, { ...(await resolveConfig(file)), parser: 'markdown' });
};

if (import.meta.main) {
  for (const name of DOCUMENTS) {
    const wanted = await generateDocument(name);
    if (!process.argv.includes('--check')) await writeFile(join(MODULE, name), wanted);
    else if (wanted !== (await read(name))) {
      process.stderr.write(`terraform/${name} is not up to date: run \`npm run generate\`.\n`);
      process.exitCode = 1;
    }
  }
}
