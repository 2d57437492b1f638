import { describe, expect, test } from 'vitest';

import { SystemError, type ErrorCode } from '#shared/app/errors.ts';
import { errorOfReply, errorOfTransport, saysAbsent } from '#shared/kubernetes/failure.ts';

const status = (code: number, reason: string, name = 'p') => ({
  status: code,
  text: JSON.stringify({ kind: 'Status', reason, message: `${reason} it is`, details: { name }, code }),
});

const CODES: readonly (readonly [code: number, reason: string, expected: ErrorCode])[] = [
  [400, 'BadRequest', 'InvalidSpec'],
  [401, 'Unauthorized', 'Unauthorised'],
  [403, 'Forbidden', 'Unauthorised'],
  [404, 'NotFound', 'NotFound'],
  [409, 'Conflict', 'Conflict'],
  [422, 'Invalid', 'InvalidSpec'],
  [429, 'TooManyRequests', 'Transient'],
  [500, 'InternalError', 'Transient'],
  [503, 'ServiceUnavailable', 'Transient'],
  [504, 'Timeout', 'Transient'],
  [302, '', 'Transient'],
];

describe('an answer of the API server', () => {
  test.each(CODES)('%i %s becomes %s with the server’s own words', (code, reason, expected) => {
    const error = errorOfReply('get', status(code, reason), 'p');
    expect(error).toMatchObject({ code: expected, provider: { code: reason || String(code) } });
  });

  test.each([
    ['of a path that does not exist', { status: 404, text: '404 page not found\n' }],
    ['of a gateway', { status: 404, text: '<html>not here</html>' }],
    ['about another object', status(404, 'NotFound', 'crawlers')],
    ['without a reason', status(404, '')],
  ])('a 404 %s never says that the object is absent', (_, reply) => {
    expect(saysAbsent(reply, 'p')).toBe(false);
    expect(errorOfReply('get', reply, 'p').code).toBe('Transient');
  });

  test('a 404 about this object says so', () => {
    expect(saysAbsent(status(404, 'NotFound'), 'p')).toBe(true);
  });

  test('that never came is Transient, while an error of ours keeps its code', () => {
    expect(errorOfTransport('get', new TypeError('fetch failed'))).toMatchObject({ code: 'Transient' });
    const own = new SystemError('Unauthorised', 'no credentials');
    expect(errorOfTransport('get', own)).toBe(own);
  });
});
