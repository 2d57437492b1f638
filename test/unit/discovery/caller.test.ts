import { expect, it } from 'vitest';

import { callerOf } from '#shared/app/caller.ts';

const bearer = (payload: string): string => `Bearer e30.${Buffer.from(payload).toString('base64url')}.sig`;

it.each([
  ['no token', {}, ''],
  ['an email', { authorization: bearer('{"email":"a@example.com"}') }, 'a@example.com'],
  ['no email', { authorization: bearer('{"sub":"7"}') }, ''],
  ['an email that is no string', { authorization: bearer('{"email":7}') }, ''],
  ['no JSON', { authorization: bearer('{') }, ''],
  ['no token of three parts', { authorization: 'Bearer x' }, ''],
  ['another scheme', { authorization: 'Basic YTpi' }, ''],
  [
    'two headers, of which the platform judges one',
    {
      authorization: bearer('{"email":"forged@example.com"}'),
      'x-serverless-authorization': bearer('{"email":"a@example.com"}'),
    },
    'a@example.com',
  ],
])('%s', (_what, headers, email) => {
  expect(callerOf(headers)).toBe(email);
});
