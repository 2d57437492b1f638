import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  MAX_BODY_BYTES,
  MAX_HEAD_BYTES,
  parseBody,
  parseHead,
  type Parsed,
} from '../../../functions/health/probe/response.ts';

const parse = (bytes: Buffer, ended = false): Parsed<{ status: number; body: string }> => {
  const head = parseHead(bytes);
  if (head.kind !== 'done') return head;
  const body = parseBody(bytes, head.value, ended);
  return body.kind === 'done'
    ? { kind: 'done', value: { status: head.value.status, body: body.value.toString('utf8') } }
    : body;
};

const ok = (body: string, status = 200) => ({ kind: 'done', value: { status, body } });

describe('responses', () => {
  const complete: Record<string, [string, object]> = {
    'with a length': ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi', ok('hi')],
    'with a length, and more behind it': ['HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nhi there', ok('hi')],
    'in chunks': [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3;x=y\r\n, y\r\n0\r\n\r\n',
      ok('hi, y'),
    ],
    'without a reason': ['HTTP/1.0 204\r\nContent-Length: 0\r\n\r\n', ok('', 204)],
    'after interim ones': [
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
      ok(''),
    ],
  };
  it.each(Object.entries(complete))('%s are read', (_, [text, expected]) => {
    expect(parse(Buffer.from(text))).toStrictEqual(expected);
  });

  it('without a length end with the connection', () => {
    const bytes = Buffer.from('HTTP/1.1 200 OK\r\n\r\nhi');
    expect(parse(bytes).kind).toBe('more');
    expect(parse(bytes, true)).toStrictEqual(ok('hi'));
  });

  const refused: Record<string, string> = {
    'another protocol': 'SSH-2.0-x\r\n\r\n',
    'another version': 'HTTP/2 200 OK\r\n\r\n',
    'a status out of range': 'HTTP/1.1 999 x\r\n\r\n',
    'a header without a name': 'HTTP/1.1 200 OK\r\n: x\r\n\r\n',
    'a folded header': 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n',
    'a space before the colon': 'HTTP/1.1 200 OK\r\na : b\r\n\r\n',
    'a switched protocol': 'HTTP/1.1 101 Switching\r\n\r\n',
    'a negative length': 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'a length that is too large': `HTTP/1.1 200 OK\r\nContent-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`,
    'length and chunks':
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
    'a chunk that is no number': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    'a chunk that is longer than it says':
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n',
    'a head without end': `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(MAX_HEAD_BYTES)}`,
    'interim answers without end': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(400),
    'a body without end': `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(MAX_BODY_BYTES + 1)}`,
  };
  it.each(Object.entries(refused))('%s is refused', (_, text) => {
    expect(parse(Buffer.from(text), true).kind).toBe('invalid');
  });

  it('mean the same wherever they are cut, and nothing before they are complete', () => {
    const texts = Object.values(complete).map(([text]) => text.replace(/hi there$/, 'hi'));
    fc.assert(
      fc.property(fc.constantFrom(...texts), fc.nat(200), (text, cut) => {
        const bytes = Buffer.from(text);
        const shorter = parse(bytes.subarray(0, Math.min(cut, bytes.length - 1)));
        // The last line of a chunked body is of no interest.
        if (text.includes('chunked') && cut >= bytes.length - 2) return;
        expect(shorter.kind).toBe('more');
      }),
    );
  });

  it('of any bytes are read or refused, never thrown at', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, ended) => {
        expect(['more', 'invalid', 'done']).toContain(parse(Buffer.from(bytes), ended).kind);
        expect(
          parse(
            Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'), bytes]),
            ended,
          ).kind,
        ).toMatch(/more|invalid|done/);
      }),
    );
  });
});
