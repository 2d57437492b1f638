/** How the control plane's users prove who they are: the server's token file, the clients' kubeconfigs. */

export interface ClusterUser {
  readonly name: string;
  readonly groups?: readonly string[];
}

export interface Credentials {
  readonly server: string;
  /** PEM */
  readonly ca: string;
  readonly user: string;
  readonly token: string;
}

const csv = (field: string): string => `"${field.replaceAll('"', '""')}"`;

/** The text of kube-apiserver's token-auth-file: token, name, uid, groups. */
export const tokenFile = (users: readonly ClusterUser[], tokens: Readonly<Record<string, string>>): string =>
  users
    .map(({ name, groups = [] }) => [tokens[name] ?? '', name, name, groups.join(',')].map(csv).join(','))
    .map((line) => `${line}\n`)
    .join('');

/** The text of a kubeconfig, self-contained; JSON is YAML. */
export const kubeconfig = ({ server, ca, user, token }: Credentials): string =>
  `${JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'local',
          cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
        },
      ],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: user, context: { cluster: 'local', user } }],
      'current-context': user,
    },
    undefined,
    2,
  )}\n`;
