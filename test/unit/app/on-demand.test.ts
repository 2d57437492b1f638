import { describe, expect, test } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import type { HttpRequest } from '#shared/app/http.ts';
import { lazily } from '#shared/app/lazily.ts';
import { closeOpened, onDemand, type Application } from '#shared/app/on-demand.ts';

const request = (method: string, path: string): HttpRequest => ({
  method,
  path,
  query: new URLSearchParams(),
  headers: {},
  body: new Uint8Array(),
});

/** An application, and how often it was loaded and closed; the first `failures` loads fail. */
const aLazyOne = (failures: readonly Error[] = []) => {
  const left = [...failures];
  const seen = { loads: 0, closes: 0 };
  const application = lazily<Application>(async () => {
    seen.loads += 1;
    const failure = left.shift();
    if (failure) throw failure;
    return {
      handler: async ({ method, path }) => ({ status: 200, body: `${method} ${path}` }),
      close: async () => {
        seen.closes += 1;
      },
    };
  });
  return { application, seen };
};

describe('a function that loads its application on demand', () => {
  test('answers GET /health without it', async () => {
    const { application, seen } = aLazyOne();
    expect(await onDemand(application)(request('GET', '/health'))).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    });
    await closeOpened(application);
    expect(seen).toEqual({ loads: 0, closes: 0 });
  });

  test.each([
    ['POST', '/health'],
    ['GET', '/health/'],
    ['POST', '/'],
  ])('leaves %s %s to it', async (method, path) => {
    const { application } = aLazyOne();
    expect(await onDemand(application)(request(method, path))).toEqual({
      status: 200,
      body: `${method} ${path}`,
    });
  });

  test('loads it once, for requests at the same time and later ones, and closes what it loaded', async () => {
    const { application, seen } = aLazyOne();
    const handler = onDemand(application);
    await Promise.all([handler(request('POST', '/')), handler(request('POST', '/'))]);
    await handler(request('POST', '/'));
    await closeOpened(application);
    expect(seen).toEqual({ loads: 1, closes: 1 });
  });

  test('says that it could not be loaded, with the cause, and the next request tries again', async () => {
    const cause = new Error('no such file');
    const { application, seen } = aLazyOne([cause]);
    const handler = onDemand(application);
    const both = await Promise.allSettled([handler(request('POST', '/')), handler(request('POST', '/'))]);
    for (const one of both) {
      expect(one).toMatchObject({
        reason: { code: 'Transient', message: 'The function could not be loaded', cause },
      });
    }
    expect(await handler(request('POST', '/'))).toMatchObject({ status: 200 });
    expect(seen.loads).toBe(2);
  });

  test('passes on what the application itself says, and has nothing to close then', async () => {
    const refusal = new SystemError('NotConfigured', 'there is no certificate in it');
    const { application, seen } = aLazyOne([refusal]);
    await expect(onDemand(application)(request('POST', '/'))).rejects.toBe(refusal);
    await closeOpened(application);
    expect(seen.closes).toBe(0);
  });
});

test('an opening that failed late does not undo the one that came after it', async () => {
  const first = Promise.withResolvers<string>();
  const results = [first.promise, Promise.resolve('second')];
  const lazy = lazily(() => results.shift() ?? Promise.reject(new Error('a third opening')));
  const waiting = Promise.allSettled([lazy.get(), lazy.get()]);
  first.reject(new Error('away'));
  await waiting;
  expect(await lazy.get()).toBe('second');
  expect(await lazy.opened()).toBe('second');
});
