import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { agesOf, decodePush, parseChange, parseProbe } from '#shared/app/push.ts';

const encode = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const base64 = (text: string): string => Buffer.from(text).toString('base64');

const UID = '11111111-1111-4111-8111-111111111111';
const CHANGE = { namespace: 'crawlers', name: 'p', uid: UID, reason: 'New' };
const message = (data: unknown, more = {}) => ({
  message: {
    data: base64(JSON.stringify(data)),
    messageId: '7',
    publishTime: '2026-01-01T00:00:00Z',
    ...more,
  },
  subscription: 'projects/p/subscriptions/s',
});

describe('a push request', () => {
  test('is decoded with its ordering key, attempt, time and trace', () => {
    const attributes = { googclient_traceparent: 'x', other: 'y' };
    const body = { ...message(CHANGE, { orderingKey: UID, attributes }), deliveryAttempt: 3 };
    expect(decodePush(encode(body))).toEqual({
      kind: 'message',
      data: CHANGE,
      messageId: '7',
      orderingKey: UID,
      deliveryAttempt: 3,
      publishedAt: Date.parse('2026-01-01T00:00:00Z'),
      traceparent: 'x',
    });
  });

  test.each([
    {},
    { publishTime: 'yesterday' },
    { attributes: 7 },
    { attributes: { googclient_traceparent: 7 } },
  ])('needs none of them, nor are they worth refusing it: %j', (more) => {
    const push = decodePush(encode(message(CHANGE, { publishTime: undefined, ...more })));
    expect(push).toEqual({ kind: 'message', data: CHANGE, messageId: '7' });
  });

  test('waited from its publication until now, whatever the clocks say', () => {
    const push = { kind: 'message', data: CHANGE, messageId: '7' } as const;
    expect(agesOf({ ...push, publishedAt: 1000 }, { now: () => 3500 })).toEqual([2500]);
    expect(agesOf({ ...push, publishedAt: 1000 }, { now: () => 900 })).toEqual([0]);
    expect(agesOf(push, { now: () => 900 })).toEqual([]);
  });

  test.each([
    ['an empty body', ''],
    ['garbage', 'message=1'],
    ['no envelope', {}],
    ['an array', []],
    ['null', null],
    ['a message without data', { message: { messageId: '7' } }],
    ['data that is not base64', { message: { messageId: '7', data: '***' } }],
    ['data that is not JSON', { message: { messageId: '7', data: base64('{') } }],
    ['a message without an id', { message: { data: base64('1') } }],
    [
      'a structured CloudEvent',
      { specversion: '1.0', type: 'google.cloud.pubsub.topic.v1.messagePublished' },
    ],
  ])('row 19: %s is undecodable, with a reason', (_, body) => {
    const push = decodePush(encode(body));
    expect(push.kind).toBe('undecodable');
    expect(push).toHaveProperty('why');
  });

  test('bytes that are not UTF-8 are undecodable', () => {
    expect(decodePush(new Uint8Array([0xff, 0xfe]))).toMatchObject({ kind: 'undecodable' });
  });

  test('never throws, whatever comes', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(encode)), (body) => {
        expect(['message', 'undecodable']).toContain(decodePush(body).kind);
      }),
    );
  });
});

describe('what a message holds', () => {
  test('is a change, unknown fields left out', () => {
    expect(parseChange({ ...CHANGE, more: 1 })).toEqual(CHANGE);
  });

  test.each([
    ['no uid', { ...CHANGE, uid: undefined }],
    ['a uid that is none', { ...CHANGE, uid: '../x' }],
    ['an empty name', { ...CHANGE, name: '' }],
    ['a name that is too long', { ...CHANGE, name: 'x'.repeat(254) }],
    ['a name that leads elsewhere', { ...CHANGE, name: 'a/../b' }],
    ['a name in upper case', { ...CHANGE, name: 'P' }],
    ['a namespace that leads elsewhere', { ...CHANGE, namespace: '../..' }],
    ['a namespace with a dot', { ...CHANGE, namespace: 'a.b' }],
    ['a namespace that is too long', { ...CHANGE, namespace: 'x'.repeat(64) }],
    ['a number', 7],
    ['null', null],
  ])('is no change with %s', (_, data) => {
    expect(parseChange(data)).toBeUndefined();
  });

  test('is a change of a Proxy with the longest of names', () => {
    const longest = { ...CHANGE, namespace: 'n'.repeat(63), name: `${'p'.repeat(126)}.${'1-2'.repeat(42)}` };
    expect(longest.name).toHaveLength(253);
    expect(parseChange(longest)).toEqual(longest);
  });

  test('is a probe for a known reason only', () => {
    expect(parseProbe({ uid: UID, reason: 'published' })).toEqual({ uid: UID, reason: 'published' });
    expect(parseProbe({ uid: UID, reason: 'other' })).toBeUndefined();
  });
});
