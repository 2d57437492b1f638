/**
 * As much of kustomize as the folder terraform/cluster uses, so that its files can be tested without the program: resources,
 * components, patches that delete, and the names of images. Anything else in a kustomization is an error, and so not silently left out.
 */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';

import { parse } from 'yaml';
import { z } from 'zod';

import { manifestSchema, parseManifests, type Manifest } from './api.ts';

const target = z.strictObject({
  group: z.string(),
  kind: z.string(),
  /** A regular expression of the whole name. */
  name: z.string().default('.*'),
});
const kustomization = z.strictObject({
  apiVersion: z.string().startsWith('kustomize.config.k8s.io/'),
  kind: z.enum(['Kustomization', 'Component']),
  resources: z.array(z.string()).default([]),
  components: z.array(z.string()).default([]),
  patches: z.array(z.strictObject({ path: z.string(), target })).default([]),
  images: z
    .array(z.strictObject({ name: z.string(), newName: z.string(), digest: z.string().optional() }))
    .default([]),
});

const FILE = 'kustomization.yaml';
const deletes = z.object({ $patch: z.literal('delete') });

/** A file must lie in the folder that names it, as kustomize demands. */
const readWithin = (folder: string, path: string): string => {
  const file = resolve(folder, path);
  if (!file.startsWith(`${resolve(folder)}${sep}`)) throw new Error(`${path} is not within ${folder}`);
  return readFileSync(file, 'utf8');
};

const resourcesOf = (folder: string, path: string): readonly Manifest[] => {
  const place = join(folder, path);
  return existsSync(place) && statSync(place).isDirectory()
    ? buildKustomization(place)
    : parseManifests(readWithin(folder, path));
};

type Target = z.output<typeof target>;

const isMeant = ({ apiVersion, kind, metadata }: Manifest, wanted: Target): boolean =>
  kind === wanted.kind &&
  apiVersion.startsWith(`${wanted.group}/`) &&
  new RegExp(`^(?:${wanted.name})$`).test(metadata.name);

type Image = z.output<typeof kustomization>['images'][number];

/** Every field `image`, wherever it is, that is called what one of the images is. */
const renamed = (value: unknown, images: readonly Image[]): unknown => {
  if (Array.isArray(value)) return value.map((one: unknown) => renamed(one, images));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]: [string, unknown]) => {
      const image = key === 'image' ? images.find(({ name }) => name === inner) : undefined;
      if (!image) return [key, renamed(inner, images)];
      return [key, image.digest === undefined ? image.newName : `${image.newName}@${image.digest}`];
    }),
  );
};

const withImages = (manifest: Manifest, images: readonly Image[]): Manifest =>
  manifestSchema.parse(renamed(manifest, images));

/** The manifests of a folder with a kustomization. `given` are those that a component is added to. */
export const buildKustomization = (folder: string, given: readonly Manifest[] = []): readonly Manifest[] => {
  const { resources, components, patches, images } = kustomization.parse(
    parse(readFileSync(join(folder, FILE), 'utf8')),
  );
  let manifests = [...given, ...resources.flatMap((path) => resourcesOf(folder, path))];
  for (const path of components) manifests = [...buildKustomization(join(folder, path), manifests)];
  for (const patch of patches) {
    deletes.parse(parse(readWithin(folder, patch.path)));
    const left = manifests.filter((manifest) => !isMeant(manifest, patch.target));
    if (left.length === manifests.length) throw new Error(`${patch.path} finds nothing to delete`);
    manifests = left;
  }
  return images.length === 0 ? manifests : manifests.map((manifest) => withImages(manifest, images));
};
