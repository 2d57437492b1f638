/** What travels through Pub/Sub: nudges. They carry an identity and a reason, never state. */

import type { ProxyRef } from './proxy.ts';

/** Where a message says which span it was published in (W3C Trace Context); Pub/Sub's own clients name it so. */
export const TRACEPARENT_ATTRIBUTE = 'googclient_traceparent';

interface Traced {
  /** Of the change that this goes on with; default: of the span that it is published in. Travels as an attribute. */
  readonly traceparent?: string;
}

/** Topic `proxy-changes`, ordered by `uid`: look at this Proxy. `reason` is for people; it may ask for a closer look. */
export interface ChangeMessage extends ProxyRef, Traced {
  readonly reason: string;
}

/** Topic `proxy-probes`: probe this proxy's endpoints now. */
export interface ProbeMessage extends Traced {
  readonly uid: string;
  readonly reason: 'published' | 'report';
}
