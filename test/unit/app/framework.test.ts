/** Every function as its `index.ts` registers it, on the framework's own server; none of its clients connects to anything. */

import type { Server } from 'node:http';
import { connect } from 'node:net';

import { getTestServer } from '@google-cloud/functions-framework/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { FUNCTIONS } from '#test/tools/build.ts';

const ENVIRONMENT = {
  GOOGLE_CLOUD_PROJECT: 'p',
  INSTALLATION_ID: 'prod',
  PROXY_NAMESPACES: 'crawlers',
  CLUSTER_ENDPOINT: 'https://gke.invalid',
  PROBE_TARGET_URL: 'https://echo.invalid/',
  // Nobody listens there, and nobody is asked.
  FIRESTORE_EMULATOR_HOST: '127.0.0.1:9',
  PUBSUB_EMULATOR_HOST: '127.0.0.1:9',
};

/** The bytes of one request, as they are: `fetch` would repair the path. */
const send = async (port: number, text: string): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

const requestOf = (line: string, body = '', headers = ''): string =>
  `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

describe.each(FUNCTIONS)('%s, as it is deployed', (name) => {
  let server: Server;
  let port = 0;
  beforeAll(async () => {
    for (const [key, value] of Object.entries(ENVIRONMENT)) vi.stubEnv(key, value);
    await import(`../../../functions/${name}/index.ts`);
    vi.unstubAllEnvs();
    server = getTestServer(name);
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const address = server.address();
    port = typeof address === 'object' && address ? address.port : 0;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  it.each<[string, string, number, string]>([
    ['a path that does not decode', requestOf('POST /%zz'), 400, 'InvalidRequest'],
    ['malformed JSON', requestOf('POST /', '{"message":'), 400, 'MalformedBody'],
    [
      'an encoding that is none',
      requestOf('POST /', '{}', 'Content-Encoding: zip\r\n'),
      415,
      'UnsupportedEncoding',
    ],
  ])('answers %s with problem details, no HTML and no stack', async (_what, request, status, code) => {
    const reply = await send(port, request);
    expect(reply).toContain(`HTTP/1.1 ${status} `);
    expect(reply.toLowerCase()).toContain('content-type: application/problem+json');
    expect(reply).toContain(`"code":"${code}"`);
    expect(reply).not.toMatch(/<html|node_modules|at .*\.js/i);
  });

  it('answers GET /health', async () => {
    expect(await send(port, requestOf('GET /health'))).toMatch(/^HTTP\/1\.1 200 /);
  });
});
