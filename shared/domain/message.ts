/** What travels through Pub/Sub: nudges. They carry an identity and a reason, never state. */

import type { ProxyRef } from './proxy.ts';

/** Topic `proxy-changes`, ordered by `uid`: look at this Proxy. `reason` is for people. */
export interface ChangeMessage extends ProxyRef {
  readonly reason: string;
}

/** Topic `proxy-probes`: probe this proxy's endpoints now. */
export interface ProbeMessage {
  readonly uid: string;
  readonly reason: 'published' | 'report';
}
