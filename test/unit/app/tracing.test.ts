/** Spans, and where their ids appear. */

import { context, trace, type TracerProvider } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { instrument } from '#shared/app/instrumentation.ts';
import { contextOfRequest, formatTraceparent, parseTraceparent } from '#shared/app/trace-context.ts';
import { noTracing } from '#shared/app/tracing.ts';

afterEach(() => {
  trace.disable();
  context.disable();
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const PARENT = `00-${TRACE}-${SPAN}-01`;

const lineSchema = z
  .looseObject({
    message: z.string(),
    function: z.string(),
    'logging.googleapis.com/trace': z.string().default(''),
    'logging.googleapis.com/spanId': z.string().default(''),
    span: z.object({ name: z.string(), parentSpanId: z.string().optional() }).loose().optional(),
  })
  .transform((line) => ({
    message: line.message,
    trace: line['logging.googleapis.com/trace'].replace('projects/p/traces/', ''),
    span: line['logging.googleapis.com/spanId'],
    ended: line.span,
    error: line['error'],
  }));

/** Tokens 0…01, 0…02, and so on. */
const start = () => {
  const lines: string[] = [];
  let tokens = 0;
  const instrumentation = instrument({
    name: 'test',
    projectId: 'p',
    clock: { monotonic: () => 0 },
    ids: {
      token: () => {
        tokens += 1;
        return `${'0'.repeat(14)}${String(tokens).padStart(2, '0')}${'f'.repeat(16)}`;
      },
    },
    write: (line) => lines.push(line),
  });
  return { ...instrumentation, lines: () => lines.map((line) => lineSchema.parse(JSON.parse(line))) };
};

describe('a span', () => {
  it('goes on in the trace of its parent, and lines inside of it carry its ids', async () => {
    const { log, tracing, lines } = start();
    await tracing.span('outer', { parent: PARENT }, async () => {
      log.info('in outer');
      await tracing.span('inner', {}, async () => {
        await Promise.resolve();
        log.info('in inner');
      });
    });
    log.info('outside');
    const seen = lines();
    const [outer, inner] = [seen[0]?.span ?? '', seen[1]?.span ?? ''];
    expect(new Set([SPAN, outer, inner]).size).toBe(3);
    expect(seen).toMatchObject([
      { message: 'in outer', trace: TRACE, span: outer },
      { message: 'in inner', trace: TRACE, span: inner },
      { message: 'span', span: inner, ended: { name: 'inner', parentSpanId: outer } },
      { message: 'span', span: outer, ended: { name: 'outer', parentSpanId: SPAN } },
      { message: 'outside', trace: '', span: '' },
    ]);
  });

  it('begins a trace where nothing caused it, or where what caused it is no traceparent', async () => {
    const { tracing } = start();
    const seen: (string | undefined)[] = [];
    for (const parent of [undefined, '', 'x', `00-${'0'.repeat(32)}-${SPAN}-01`])
      await tracing.span('s', { parent }, async () => {
        seen.push(tracing.traceparent());
      });
    expect(new Set(seen.map((text) => parseTraceparent(text)?.traceId)).size).toBe(4);
    expect(seen).not.toContain(undefined);
    expect(tracing.traceparent()).toBeUndefined();
  });

  it('says that its work failed, and lets the error through', async () => {
    const { tracing, lines } = start();
    const failure = new Error('no');
    await expect(tracing.span('s', {}, () => Promise.reject(failure))).rejects.toBe(failure);
    expect(lines()).toMatchObject([{ ended: { name: 's' }, error: ['Error: no'] }]);
  });

  it('is the very span of an SDK that is registered, under the same parent', async () => {
    const own = { traceId: TRACE, spanId: '00f067aa0ba902b7', traceFlags: 1 };
    const log: string[] = [];
    const provider: TracerProvider = {
      getTracer: (library) => ({
        startSpan: (name, options, parent) => {
          const from = parent && trace.getSpanContext(parent)?.spanId;
          log.push(`${library} starts ${name} of ${from} with ${JSON.stringify(options?.attributes)}`);
          return Object.assign(trace.wrapSpanContext(own), { end: () => void log.push(`${name} ends`) });
        },
        startActiveSpan: () => {
          throw new Error('not used');
        },
      }),
    };
    trace.setGlobalTracerProvider(provider);
    const { tracing } = start();
    await tracing.span('s', { parent: PARENT, attributes: { uid: 'u' } }, async () => {
      log.push(tracing.traceparent() ?? '');
    });
    expect(log).toEqual([
      `egress-proxies starts s of ${SPAN} with {"uid":"u"}`,
      `00-${TRACE}-00f067aa0ba902b7-01`,
      's ends',
    ]);
  });

  it('of nobody is the bare work (S3)', async () => {
    expect(await noTracing.span('s', {}, () => Promise.resolve(7))).toBe(7);
    expect([noTracing.traceparent(), noTracing.fields()]).toEqual([undefined, {}]);
  });
});

describe('a trace context', () => {
  it.each([
    [PARENT, { traceId: TRACE, spanId: SPAN, sampled: true }],
    [`cc-${TRACE}-${SPAN}-00-more`, { traceId: TRACE, spanId: SPAN, sampled: false }],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    [`00-${TRACE}-${SPAN}-01x`, undefined],
  ])('is read from %s', (text, expected) => {
    const read = parseTraceparent(text);
    expect(read).toEqual(expected);
    expect(read && parseTraceparent(formatTraceparent(read))).toEqual(expected);
  });

  it.each([
    [{ traceparent: PARENT, 'x-cloud-trace-context': `${'1'.repeat(32)}/1;o=0` }, SPAN, true],
    [{ 'x-cloud-trace-context': `${TRACE}/18446744073709551615;o=1` }, 'ffffffffffffffff', true],
    [{ 'x-cloud-trace-context': `${TRACE}/255` }, '00000000000000ff', false],
  ])('of a request is in %j', (headers, spanId, sampled) => {
    expect(contextOfRequest(headers)).toEqual({ traceId: TRACE, spanId, sampled });
  });
});
