/** Where a cluster is and who we are there, by the client library's rules. */

import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';

import { KubeConfig } from '@kubernetes/client-node';
import { GoogleAuth } from 'google-auth-library';

import { SystemError } from '#shared/app/errors.ts';

/** `fresh`: the one before was refused, so what is kept is no good any more. */
export type AccessToken = (fresh: boolean) => Promise<string>;

/** A kubeconfig file, a GKE DNS endpoint with Google credentials, or the Pod's own service account. */
export type ClusterOptions =
  | { readonly kubeconfig: string }
  | { readonly endpoint: string; readonly accessToken?: AccessToken }
  | { readonly inCluster: true };

/** The name must not be one that the library knows, and the token is asked for per request, since it lives for an hour. */
const ADC = 'google-adc';
const GOOGLE_SCOPES = [
  'https://www.googleapis.com/auth/cloud-platform',
  'https://www.googleapis.com/auth/userinfo.email',
];

const openAuth = () => new GoogleAuth({ scopes: GOOGLE_SCOPES });

const googleToken = (): AccessToken => {
  let auth = openAuth();
  return async (fresh) => {
    // It keeps a token until that is about to expire by its own clock, whatever others think of it.
    if (fresh) auth = openAuth();
    const token = await auth.getAccessToken();
    if (!token) throw new SystemError('Unauthorised', 'Kubernetes: no Google credentials are available');
    return token;
  };
};

/** Where the tokens of an endpoint come from. */
export interface Tokens {
  next(): Promise<string>;
  /** The server does not take this one. */
  refused(token: string): void;
}

/** `undefined` where the library finds credentials by itself. */
export const tokensOf = (options: ClusterOptions): Tokens | undefined => {
  if (!('endpoint' in options)) return undefined;
  const accessToken = options.accessToken ?? googleToken();
  let newest = '';
  let wanted = false;
  return {
    async next() {
      const fresh = wanted;
      wanted = false;
      newest = await accessToken(fresh);
      return newest;
    },
    refused(token) {
      // Of several calls with the same token the first one to come back renews it for all.
      if (token === newest) wanted = true;
    },
  };
};

const loadEndpoint = (config: KubeConfig, endpoint: string, tokens: Tokens | undefined): void => {
  config.loadFromClusterAndUser(
    { name: 'endpoint', server: endpoint, skipTLSVerify: false, tlsServerName: new URL(endpoint).hostname },
    { name: ADC, authProvider: { name: ADC } },
  );
  config.addAuthenticator({
    isAuthProvider: (user) => user.name === ADC,
    applyAuthentication: async (_user: unknown, options: RequestOptions) => {
      options.headers = { Authorization: `Bearer ${(await tokens?.next()) ?? ''}` };
    },
  });
};

const loadFile = (config: KubeConfig, path: string): void => {
  try {
    readFileSync(path);
    config.loadFromFile(path);
  } catch (cause) {
    throw new SystemError('NotConfigured', `Kubernetes: the kubeconfig ${path} is not readable`, { cause });
  }
};

/** Reads the configuration. Throws `NotConfigured` when there is none to read. */
export const loadConfig = (options: ClusterOptions, tokens: Tokens | undefined): KubeConfig => {
  const config = new KubeConfig();
  if ('kubeconfig' in options) loadFile(config, options.kubeconfig);
  else if ('endpoint' in options) loadEndpoint(config, options.endpoint, tokens);
  else config.loadFromCluster();
  return config;
};

/** The API server's URL. Throws `NotConfigured` unless it is https and verified. */
export const serverOf = (config: KubeConfig): URL => {
  const cluster = config.getCurrentCluster();
  const server = cluster ? URL.parse(cluster.server) : null;
  if (!cluster || !server) {
    throw new SystemError('NotConfigured', 'Kubernetes: the configuration names no cluster');
  }
  if (cluster.skipTLSVerify || server.protocol !== 'https:') {
    throw new SystemError('NotConfigured', 'Kubernetes: the server must be https, its certificate verified');
  }
  return server;
};
