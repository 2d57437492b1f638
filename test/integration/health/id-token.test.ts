/** An echo behind the platform's own authentication, and the metadata server of that platform on loopback. */

import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { systemClock } from '#shared/app/clock.ts';
import { systemIds } from '#shared/app/ids.ts';

import { fetchGoogleIdToken, makeIdTokens } from '../../../functions/health/probe/id-tokens.ts';
import { makeProber, type Prober } from '../../../functions/health/probe/prober.ts';
import type { Target } from '../../../functions/health/probe/target.ts';
import { PROXY_HOST, targetAt, via } from './parts.ts';
import { answering, echoAnswer, startTarget, tunnelTo, type Answer, type TestServer } from './servers.ts';
import { deliver, round, startWorld, type World } from './world.ts';

const AUDIENCE = 'https://prod-echo-abc.a.run.app';
const BUDGET = 5000;
const HOUR = 3600;

/** Signed by nobody; `mark` makes it findable. */
const MARK = 'c2lnbmF0dXJlLW1hcms';
const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
const tokenFor = (audience: string): string => {
  const claims = { aud: audience, exp: Math.floor(Date.now() / 1000) + HOUR };
  return `${encode({ alg: 'none' })}.${encode(claims)}.${MARK}`;
};

/** The metadata server, as far as it is asked for ID tokens. */
const give: Answer = (request, response) => {
  const audience = new URL(request.url ?? '/', 'http://metadata').searchParams.get('audience') ?? '';
  response.setHeader('metadata-flavor', 'Google').end(tokenFor(audience));
};
const refuse: Answer = (_, response) => response.setHeader('metadata-flavor', 'Google').writeHead(404).end();
const silent: Answer = () => undefined;
const nonsense: Answer = (_, response) => response.setHeader('metadata-flavor', 'Google').end('<html>');
const platform = { answer: give, paths: [] as string[] };

/** As Cloud Run does before it calls a function: who has no token for this very service is refused. */
const admitsUs: Answer = (request, response) => {
  const [, payload = ''] = /^Bearer [^.]+\.([^.]+)\./.exec(request.headers.authorization ?? '') ?? [];
  const claims = Buffer.from(payload, 'base64url').toString('utf8');
  if (claims.includes(`"aud":"${AUDIENCE}"`)) echoAnswer(request, response);
  else response.writeHead(403).end();
};

const before = { ...process.env };
let metadata: TestServer;
let world: World;
let echo: TestServer;
let open: Target;
let target: Target;
const newProber = (clock = systemClock): Prober =>
  makeProber(
    createSecureContext({ ca: [world.parts.authority.caPem] }),
    systemIds,
    makeIdTokens(fetchGoogleIdToken, clock),
  );

beforeAll(async () => {
  metadata = await startTarget((request, response) => {
    platform.paths.push(request.url ?? '');
    platform.answer(request, response);
  });
  process.env['METADATA_SERVER_DETECTION'] = 'assume-present';
  process.env['GCE_METADATA_HOST'] = `127.0.0.1:${metadata.port}`;
  world = await startWorld();
  echo = await startTarget(admitsUs, await world.parts.authority.issue('127.0.0.1'));
  open = targetAt(`https://127.0.0.1:${echo.port}/`);
  target = { ...open, audience: AUDIENCE };
});
beforeEach(() => {
  platform.answer = give;
  platform.paths.length = 0;
});
afterAll(async () => {
  for (const key of ['METADATA_SERVER_DETECTION', 'GCE_METADATA_HOST']) {
    if (before[key] === undefined) delete process.env[key];
    else process.env[key] = before[key];
  }
  await Promise.all([metadata.close(), echo.close(), world.close()]);
});

/** A proxy that remembers all that clients send to it. */
const recording = async (then: (socket: Socket) => void) => {
  const heard: Buffer[] = [];
  const proxy = await world.parts.peer((socket) => {
    socket.on('data', (chunk: Buffer) => heard.push(chunk));
    then(socket);
  });
  return { port: proxy.port, text: () => Buffer.concat(heard).toString('latin1') };
};

describe('row 85: an echo that admits callers with an ID token only', () => {
  it('answers, through a proxy and directly; without a token it is the target that refuses', async () => {
    const proxy = via(world.parts.open.port, { host: PROXY_HOST });
    const prober = newProber();
    expect(await prober.probe(proxy, [open], BUDGET)).toMatchObject({ outcome: 'TargetRefused' });
    expect(platform.paths).toStrictEqual([]);
    expect(await prober.probe(proxy, [target], BUDGET)).toStrictEqual({
      outcome: 'Ok',
      exitAddress: PROXY_HOST,
    });
    expect(await prober.probe(undefined, [target], BUDGET)).toMatchObject({ outcome: 'Ok' });
    const other = { ...target, audience: 'https://other.example' };
    expect(await prober.probe(proxy, [other], BUDGET)).toMatchObject({ outcome: 'TargetRefused' });
  });

  it('gets it inside TLS: the proxy hears nothing of it', async () => {
    const proxy = await recording(tunnelTo(echo.port));
    expect(await newProber().probe(via(proxy.port), [target], BUDGET)).toMatchObject({ outcome: 'Ok' });
    expect(proxy.text()).toContain(`CONNECT 127.0.0.1:${echo.port}`);
    expect(proxy.text()).not.toMatch(/authorization|bearer/i);
    expect(proxy.text()).not.toContain(MARK);
  });

  it('an http target gets none, whatever it asks for: the proxy would read it', async () => {
    const proxy = await recording(answering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
    const plain: Target = { ...targetAt('http://echo.example/'), audience: AUDIENCE };
    await newProber().probe(via(proxy.port), [plain], BUDGET);
    expect(proxy.text()).toContain('GET http://echo.example:80/');
    expect(proxy.text()).not.toMatch(/authorization|bearer/i);
  });

  it('pages of a healthCheck and the second target get none', async () => {
    const seen: (string | undefined)[] = [];
    const page = await startTarget(
      (request, response) => {
        seen.push(request.headers.authorization);
        response.end('hello');
      },
      await world.parts.authority.issue('127.0.0.1'),
    );
    const pageTarget = targetAt(`https://127.0.0.1:${page.port}/`, 'page');
    const reply = await newProber().probe(undefined, [target, pageTarget], BUDGET);
    await page.close();
    expect(reply).toMatchObject({ outcome: 'Ok' });
    expect(seen).toStrictEqual([undefined]);
  });
});

describe('the token', () => {
  it('is fetched once for many probes, and anew before it ends; the old one serves while none is to be had', async () => {
    let [wall, monotonic] = [Date.now(), 0];
    const pass = (seconds: number): void => {
      wall += seconds * 1000;
      monotonic += seconds * 1000;
    };
    const prober = newProber({ now: () => wall, monotonic: () => monotonic });
    const probe = async () => (await prober.probe(undefined, [target], BUDGET)).outcome;
    expect(await Promise.all(Array.from({ length: 20 }, probe))).toStrictEqual(Array(20).fill('Ok'));
    expect(platform.paths).toHaveLength(1);
    expect(platform.paths[0]).toContain(`audience=${encodeURIComponent(AUDIENCE)}`);
    pass(HOUR - 301);
    await probe();
    expect(platform.paths).toHaveLength(1);
    platform.answer = refuse;
    pass(2);
    expect(await Promise.all([probe(), probe()])).toStrictEqual(['Ok', 'Ok']);
    const asked = platform.paths.length;
    expect(asked).toBeGreaterThan(1);
    expect(await probe()).toBe('Ok');
    expect(platform.paths).toHaveLength(asked);
    platform.answer = give;
    pass(11);
    expect(await probe()).toBe('Ok');
    expect(platform.paths).toHaveLength(asked + 1);
    pass(HOUR + 1);
    platform.answer = refuse;
    expect(await probe()).toBe('NotProbed');
  });

  it.each([
    ['refuses', refuse],
    ['stays silent', silent],
    ['answers something else', nonsense],
  ])(
    'when the platform %s, nothing is probed, within seconds, and no socket is opened',
    async (_, answer) => {
      platform.answer = answer;
      const accepted = echo.accepted();
      const reply = await newProber().probe(undefined, [target], BUDGET);
      expect(reply).toMatchObject({ outcome: 'NotProbed', failed: target });
      expect(reply.detail).not.toContain('html');
      expect(echo.accepted()).toBe(accepted);
    },
  );

  it('that cannot be had makes rounds inconclusive and condemns nobody; then all goes on, and it is in no log', async () => {
    const place = { host: PROXY_HOST, port: world.parts.open.port };
    const check = { failureThreshold: 1 };
    const healthy = await world.publish({ place, state: 'Healthy', exitAddress: PROXY_HOST, check });
    const starting = await world.publish({ place, old: true, check });
    const states = async () =>
      Promise.all([healthy, starting].map(async (one) => (await world.serving(one))?.verdict.state));
    platform.answer = refuse;
    const health = world.start({ prober: newProber(), target });
    expect(await round(health)).toMatchObject({
      body: { conclusion: { kind: 'inconclusive', why: 'ControlFailed' }, changes: 0 },
    });
    await deliver(health, { uid: healthy.ref.uid, reason: 'report' });
    expect(health.lines.join('')).toContain('"alert":"ProberBlind"');
    expect(await states()).toStrictEqual(['Healthy', 'Unknown']);
    platform.answer = give;
    await world.db.collection('rounds').doc('test-0').update({ until: 0 });
    expect(await round(health)).toMatchObject({ body: { conclusion: { kind: 'conclusive' } } });
    expect(await states()).toStrictEqual(['Healthy', 'Healthy']);
    expect(health.lines.join('')).not.toContain(MARK);
  });
});
