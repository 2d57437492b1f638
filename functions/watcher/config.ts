import { z } from 'zod';

import { fields } from '#shared/app/config.ts';

export const configSchema = z.object({
  GOOGLE_CLOUD_PROJECT: fields.text,
  INSTALLATION_ID: fields.installationId,
  PROXY_NAMESPACES: fields.namespaces,
  /** With `kubernetes` among them the Pods of this installation are watched too. */
  PROVIDERS: fields.list.default(['gcp']),
  PROXY_CHANGES_TOPIC: fields.text.default('proxy-changes'),
  /** Outside the cluster; inside it the Pod's own service account is used. */
  KUBECONFIG: fields.text.optional(),
  PORT: fields.count(1, 65_535).default(8080),
});
