/** What a caller may ask of a new instance, checked as the API checks it. */

import { z } from 'zod';

import { invalid, notFound } from './errors.ts';

const labels = z.record(z.string(), z.string());
const metadata = z.object({
  fingerprint: z.string().optional(),
  items: z.array(z.object({ key: z.string(), value: z.string().default('') })).default([]),
});

const bodySchema = z.object({
  name: z.string().default(''),
  description: z.string().max(2048).optional(),
  machineType: z.string().default(''),
  labels: labels.default({}),
  metadata: metadata.default({ items: [] }),
  tags: z.object({ items: z.array(z.string()).default([]) }).default({ items: [] }),
  disks: z
    .array(
      z.object({
        boot: z.boolean().default(false),
        autoDelete: z.boolean().default(false),
        initializeParams: z
          .object({
            sourceImage: z.string().default(''),
            diskSizeGb: z.string().optional(),
            diskType: z.string().optional(),
            labels: labels.default({}),
          })
          .optional(),
      }),
    )
    .default([]),
  networkInterfaces: z
    .array(
      z.object({
        network: z.string().optional(),
        subnetwork: z.string().optional(),
        accessConfigs: z.array(z.looseObject({})).default([]),
      }),
    )
    .default([]),
  scheduling: z
    .looseObject({
      provisioningModel: z.enum(['STANDARD', 'SPOT']).default('STANDARD'),
      instanceTerminationAction: z.enum(['STOP', 'DELETE']).optional(),
    })
    .default({ provisioningModel: 'STANDARD' }),
  serviceAccounts: z.array(z.looseObject({ email: z.string() })).default([]),
  shieldedInstanceConfig: z.looseObject({}).optional(),
});
export type InstanceBody = z.infer<typeof bodySchema>;
export type MetadataBody = z.infer<typeof metadata>;
export type Labels = Readonly<Record<string, string>>;

const NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/u;
const LABEL_KEY = /^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u;
const LABEL_VALUE = /^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u;
const METADATA_KEY = /^[a-zA-Z0-9_-]{1,128}$/u;
const MAX_LABELS = 64;
const MAX_VALUE_BYTES = 256 * 1024;
const MAX_METADATA_BYTES = 512 * 1024;
const MACHINE_TYPE =
  /^(?:e2-(?:micro|small|medium|(?:standard|highmem|highcpu)-\d+)|f1-micro|g1-small|(?:n1|n2|n2d|n4|c2|c3|t2d)-(?:standard|highmem|highcpu)-\d+)$/u;
const IMAGE_PROJECTS = /^(?:ubuntu-os-cloud|cos-cloud|debian-cloud|rocky-linux-cloud|ubuntu-os-pro-cloud)$/u;
const IMAGE_FAMILY = /^(?:(?:ubuntu|cos|debian|rocky)-[a-z0-9-]+)$/u;
const IMAGE = /projects\/(?<project>[^/]+)\/global\/images\/(?:family\/)?(?<image>[^/]+)$/u;

export const checkLabels = (given: Labels, field: string): void => {
  const entries = Object.entries(given);
  if (entries.length > MAX_LABELS) throw invalid(field, '', `At most ${MAX_LABELS} labels are allowed.`);
  for (const [key, value] of entries) {
    if (!LABEL_KEY.test(key)) throw invalid(field, key, 'Label keys must be lower case and at most 63 long.');
    if (!LABEL_VALUE.test(value)) {
      throw invalid(`${field}.${key}`, value, 'Label values must be lower case and at most 63 long.');
    }
  }
};

export const checkMetadata = ({ items }: MetadataBody): void => {
  let total = 0;
  const keys = new Set<string>();
  for (const { key, value } of items) {
    if (!METADATA_KEY.test(key)) throw invalid('resource.metadata.items.key', key, 'Not a metadata key.');
    if (keys.has(key)) throw invalid('resource.metadata', key, 'Metadata has duplicate keys.');
    keys.add(key);
    const bytes = Buffer.byteLength(value);
    if (bytes > MAX_VALUE_BYTES) {
      throw invalid(
        `resource.metadata.items.${key}`,
        `${value.slice(0, 20)}...`,
        `Value is too large: maximum size ${MAX_VALUE_BYTES} byte(s); actual size ${bytes} byte(s).`,
      );
    }
    total += Buffer.byteLength(key) + bytes;
  }
  if (total > MAX_METADATA_BYTES) throw invalid('resource.metadata', '', 'Metadata is too large.');
};

const lastSegment = (path: string): string => path.split('/').at(-1) ?? '';

const checkMachineType = (machineType: string, zone: string): void => {
  const isHere = new RegExp(`(?:^|/)zones/${zone}/machineTypes/[^/]+$`, 'u').test(machineType);
  if (!isHere || !MACHINE_TYPE.test(lastSegment(machineType))) {
    throw invalid('resource.machineType', machineType, 'The referenced resource does not exist.');
  }
};

const checkImage = (source: string, projectId: string): void => {
  const { project, image } = IMAGE.exec(source)?.groups ?? {};
  if (project === undefined || image === undefined) {
    throw invalid('resource.disks[0].initializeParams.sourceImage', source, 'The URL is malformed.');
  }
  const exists = project === projectId || (IMAGE_PROJECTS.test(project) && IMAGE_FAMILY.test(image));
  if (!exists) throw notFound(source.slice(source.indexOf('projects/')));
};

const checkDisks = (disks: InstanceBody['disks'], projectId: string): void => {
  const boot = disks.find((disk) => disk.boot);
  if (!boot) throw invalid('resource.disks', '', 'Boot disk must be specified.');
  for (const disk of disks) checkLabels(disk.initializeParams?.labels ?? {}, 'resource.disks.labels');
  checkImage(boot.initializeParams?.sourceImage ?? '', projectId);
};

const checkNetwork = (interfaces: InstanceBody['networkInterfaces'], zone: string): void => {
  const [first] = interfaces;
  if (!first) throw invalid('resource.networkInterfaces', '', 'At least one network interface is required.');
  const { subnetwork } = first;
  if (subnetwork === undefined) return;
  const region = zone.slice(0, zone.lastIndexOf('-'));
  const inRegion = /regions\/(?<region>[^/]+)\/subnetworks\/[^/]+$/u.exec(subnetwork)?.groups?.['region'];
  if (inRegion !== region) {
    throw invalid(
      'resource.networkInterfaces[0].subnetwork',
      subnetwork,
      inRegion === undefined
        ? 'The URL is malformed.'
        : `The referenced subnetwork must be in the region ${region}.`,
    );
  }
};

/** The body of an insert call, with every check that the API makes before it starts an operation. */
export const parseInstanceBody = (raw: unknown, projectId: string, zone: string): InstanceBody => {
  const parsed = bodySchema.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalid(`resource.${issue?.path.join('.') ?? ''}`, '', issue?.message ?? 'Malformed.');
  }
  const body = parsed.data;
  if (!NAME.test(body.name)) {
    throw invalid('resource.name', body.name, "Must be a match of regex '[a-z]([-a-z0-9]{0,61}[a-z0-9])?'");
  }
  checkMachineType(body.machineType, zone);
  checkLabels(body.labels, 'resource.labels');
  checkMetadata(body.metadata);
  for (const tag of body.tags.items) {
    if (!NAME.test(tag)) throw invalid('resource.tags.items', tag, 'Not a tag.');
  }
  checkDisks(body.disks, projectId);
  checkNetwork(body.networkInterfaces, zone);
  return body;
};

/** The body of a setMetadata call. */
export const parseMetadata = (raw: unknown): MetadataBody => {
  const parsed = metadata.safeParse(raw);
  if (!parsed.success) throw invalid('metadata', '', 'Malformed.');
  checkMetadata(parsed.data);
  return parsed.data;
};

const setLabelsSchema = z.object({ labels: labels.default({}), labelFingerprint: z.string().default('') });

/** The body of a setLabels call. */
export const parseSetLabels = (raw: unknown): z.infer<typeof setLabelsSchema> => {
  const parsed = setLabelsSchema.safeParse(raw);
  if (!parsed.success) throw invalid('labels', '', 'Malformed.');
  checkLabels(parsed.data.labels, 'labels');
  return parsed.data;
};
