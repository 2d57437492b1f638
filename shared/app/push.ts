/** Pub/Sub push: the raw envelope, decoded without the framework, which drops the ordering key and the attempt. */

import { z } from 'zod';

import { TRACEPARENT_ATTRIBUTE, type ChangeMessage, type ProbeMessage } from '#shared/domain/message.ts';

import type { Clock } from './clock.ts';

export interface PushedMessage {
  readonly kind: 'message';
  /** The JSON value that was published. */
  readonly data: unknown;
  readonly messageId: string;
  readonly orderingKey?: string;
  /** From 1; present only where a dead-letter topic is configured. */
  readonly deliveryAttempt?: number;
  /** When it was published, in milliseconds of Pub/Sub's clock. */
  readonly publishedAt?: number;
  /** Of the span that it was published in. */
  readonly traceparent?: string;
}

export type Push =
  | PushedMessage
  /** No retry can mend it: log it, count it and acknowledge it. */
  | { readonly kind: 'undecodable'; readonly why: string };

const envelope = z.object({
  message: z.object({
    data: z.base64(),
    messageId: z.string().min(1),
    orderingKey: z.string().optional(),
    publishTime: z.string().optional(),
    attributes: z.record(z.string(), z.string()).optional().catch(undefined),
  }),
  deliveryAttempt: z.number().int().optional(),
});

const parse = (bytes: Uint8Array): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) };
  } catch {
    return undefined;
  }
};

type Envelope = z.output<typeof envelope>;

/** What is known of a message beside its content; nothing that is not as it should be is worth refusing it. */
const circumstances = ({ message, deliveryAttempt }: Envelope) => {
  const publishedAt = Date.parse(message.publishTime ?? '');
  const traceparent = message.attributes?.[TRACEPARENT_ATTRIBUTE];
  return {
    ...(message.orderingKey ? { orderingKey: message.orderingKey } : {}),
    ...(deliveryAttempt === undefined ? {} : { deliveryAttempt }),
    ...(Number.isNaN(publishedAt) ? {} : { publishedAt }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
};

/** Decodes the body of one push request. Never throws. */
export const decodePush = (body: Uint8Array): Push => {
  const json = parse(body);
  if (!json) return { kind: 'undecodable', why: 'the body is not JSON in UTF-8' };
  const outer = envelope.safeParse(json.value);
  if (!outer.success) {
    const fields = outer.error.issues.map(({ path }) => path.join('.') || 'body');
    return { kind: 'undecodable', why: `the body is not a push envelope: ${fields.join(', ')}` };
  }
  const { message } = outer.data;
  const data = parse(Buffer.from(message.data, 'base64'));
  if (!data) return { kind: 'undecodable', why: 'the message data is not JSON in UTF-8' };
  return {
    kind: 'message',
    data: data.value,
    messageId: message.messageId,
    ...circumstances(outer.data),
  };
};

/** How long a message waited until now, in milliseconds: one value, or none where it does not say. Clocks may differ a little. */
export const agesOf = ({ publishedAt }: PushedMessage, clock: Pick<Clock, 'now'>): readonly number[] =>
  publishedAt === undefined ? [] : [Math.max(0, clock.now() - publishedAt)];

/** As Kubernetes names things: they become part of a path, and one that cannot exist is worth no retry. */
const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const namespace = z
  .string()
  .max(63)
  .regex(new RegExp(`^${LABEL}$`));
const name = z
  .string()
  .max(253)
  .regex(new RegExp(`^${LABEL}(\\.${LABEL})*$`));
const uid = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);

const change: z.ZodType<ChangeMessage> = z.object({
  namespace,
  name,
  uid,
  reason: z.string().max(1024).default(''),
});

const probe: z.ZodType<ProbeMessage> = z.object({ uid, reason: z.enum(['published', 'report']) });

/** `undefined` for anything that is not a change message. */
export const parseChange = (data: unknown): ChangeMessage | undefined => change.safeParse(data).data;

/** `undefined` for anything that is not a probe message. */
export const parseProbe = (data: unknown): ProbeMessage | undefined => probe.safeParse(data).data;
