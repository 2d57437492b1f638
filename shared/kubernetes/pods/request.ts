/** The Pod and the Secret that a create call sends. */

import { SystemError } from '#shared/app/errors.ts';
import type { MachineSpec } from '#shared/domain/machine.ts';
import { MACHINE_LABELS } from '#shared/domain/names.ts';

import { PROXY_RESOURCE } from '../proxy.gen.ts';

/** Where the container finds `user-data`, `proxy-port`, `proxy-username` and `proxy-password`, as far as there are any. */
export const MOUNT_PATH = '/etc/egress-proxies';
/** The request that a Pod was made by: a repetition of it meets its own Pod. */
export const REQUEST_ANNOTATION = 'crawl.example.com/request';

const VOLUME = 'machine-data';

const labelsOf = (spec: MachineSpec, installation: string): Readonly<Record<string, string>> => ({
  [MACHINE_LABELS.installation]: installation,
  [MACHINE_LABELS.uid]: spec.ref.uid,
  [MACHINE_LABELS.hash]: spec.hash,
});

/** What is handed to the container as files; undefined where there is nothing to hand. */
const filesOf = ({ userData, credentials, port }: MachineSpec): Record<string, string> | undefined =>
  userData === undefined && !credentials
    ? undefined
    : {
        'proxy-port': String(port),
        ...(userData === undefined ? {} : { 'user-data': userData }),
        ...(credentials
          ? { 'proxy-username': credentials.username, 'proxy-password': credentials.password }
          : {}),
      };

/**
 * The container gets what the restricted Pod Security Standard leaves: a forward proxy on an unprivileged port needs no
 * root, no capability and no token of the cluster.
 */
const containerOf = (spec: MachineSpec, kubernetes: NonNullable<MachineSpec['kubernetes']>) => ({
  name: 'proxy',
  image: kubernetes.image,
  ...(kubernetes.args ? { args: kubernetes.args } : {}),
  ...(kubernetes.resources ? { resources: kubernetes.resources } : {}),
  env: [{ name: 'PROXY_PORT', value: String(spec.port) }],
  ports: [{ name: 'proxy', containerPort: spec.port, protocol: 'TCP' }],
  // Ready means listening, so that "not ready" is worth a withdrawal.
  readinessProbe: { tcpSocket: { port: spec.port }, periodSeconds: 5, failureThreshold: 2 },
  securityContext: {
    allowPrivilegeEscalation: false,
    privileged: false,
    runAsNonRoot: true,
    capabilities: { drop: ['ALL'] },
  },
  ...(filesOf(spec) ? { volumeMounts: [{ name: VOLUME, mountPath: MOUNT_PATH, readOnly: true }] } : {}),
});

/** The body of the Pod. Throws `InvalidSpec` when there is nothing for this provider. */
export const podBody = (spec: MachineSpec, installation: string, requestId: string): object => {
  const { kubernetes, ref, name } = spec;
  if (!kubernetes)
    throw new SystemError('InvalidSpec', 'The Proxy says nothing for the provider kubernetes.');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: ref.namespace,
      labels: labelsOf(spec, installation),
      annotations: { [REQUEST_ANNOTATION]: requestId },
      // Without blockOwnerDeletion, which would ask for rights on the Proxy's finalizers.
      ownerReferences: [
        {
          apiVersion: `${PROXY_RESOURCE.group}/${PROXY_RESOURCE.version}`,
          kind: PROXY_RESOURCE.kind,
          name: ref.name,
          uid: ref.uid,
          controller: true,
        },
      ],
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Always',
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [containerOf(spec, kubernetes)],
      ...(kubernetes.nodeSelector ? { nodeSelector: kubernetes.nodeSelector } : {}),
      ...(kubernetes.tolerations ? { tolerations: kubernetes.tolerations } : {}),
      ...(filesOf(spec)
        ? { volumes: [{ name: VOLUME, secret: { secretName: name, defaultMode: 0o444 } }] }
        : {}),
    },
  };
};

/** The body of the Secret that the Pod mounts; it goes with the Pod. Undefined where the Pod mounts none. */
export const secretBody = (
  spec: MachineSpec,
  installation: string,
  pod: { readonly name: string; readonly uid: string },
): object | undefined => {
  const files = filesOf(spec);
  return (
    files && {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: spec.name,
        namespace: spec.ref.namespace,
        labels: labelsOf(spec, installation),
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid, controller: true }],
      },
      type: 'Opaque',
      immutable: true,
      stringData: files,
    }
  );
};

/** The Secret that a Pod of ours waits for; undefined for none. */
export const mountedSecret = (
  volumes:
    | readonly {
        readonly name: string;
        readonly secret?: { readonly secretName?: string | null | undefined } | null | undefined;
      }[]
    | null
    | undefined,
): string | undefined => volumes?.find(({ name }) => name === VOLUME)?.secret?.secretName ?? undefined;
