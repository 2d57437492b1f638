/** What every part knows of a Proxy: which one it is and what its owner asked for. */

/** Identity of one Proxy object; `uid` alone identifies it, the names are for people and for reads. */
export interface ProxyRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Providers that make machines. A Proxy without one is External: its endpoint is given, not made. */
export type ManagedProvider = 'gcp' | 'kubernetes';
export type ProviderName = ManagedProvider | 'External';

/** How an endpoint is judged; times in seconds, thresholds in consecutive probes. `url` empty = the operator's own target. */
export interface HealthCheck {
  readonly intervalSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
  readonly url: string;
}

export const DEFAULT_HEALTH_CHECK: HealthCheck = {
  intervalSeconds: 60,
  timeoutSeconds: 5,
  failureThreshold: 3,
  successThreshold: 1,
  url: '',
};

/** Port of managed proxies when the Proxy names none: the controller's default, so that a schema upgrade never replaces a fleet. */
export const DEFAULT_PROXY_PORT = 3128;

export const FINALIZER = 'crawl.example.com/proxy';
export const CLOUD_INIT_LABEL = 'crawl.example.com/cloud-init';
export const CREDENTIALS_LABEL = 'crawl.example.com/credentials';
