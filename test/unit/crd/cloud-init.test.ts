import { readFile } from 'node:fs/promises';
import { BlockList, isIPv6 } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';

const read = (path: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../../crds/${path}`, import.meta.url)), 'utf8');

/** The part of cloud-config that the samples use; anything else is a typo until shown otherwise. */
const cloudConfig = z.strictObject({
  package_update: z.boolean(),
  packages: z.array(z.string()),
  write_files: z.array(
    z.strictObject({
      path: z.string().startsWith('/'),
      owner: z.literal('root:root'),
      permissions: z.string().regex(/^0[0-7]{3}$/),
      content: z.string(),
    }),
  ),
  runcmd: z.array(z.array(z.string())),
});

const secretSample = z.object({ kind: z.string(), stringData: z.record(z.string(), z.string()).optional() });
const gcpSample = z.object({ spec: z.object({ cloudInit: z.object({ inline: z.string() }) }) });

const withPassword = await read('cloud-init/squid.yaml');
const byAddress = gcpSample.parse(parse(await read('samples/gcp.yaml'))).spec.cloudInit.inline;

const squidConfig = (userData: string): string[] => {
  const { write_files: files } = cloudConfig.parse(parse(userData));
  const config = files.find(({ path }) => path === '/etc/squid/proxy.conf.in');
  return (config?.content ?? '').split('\n').filter((line) => line !== '' && !line.startsWith('#'));
};

const forbidden = (userData: string): BlockList => {
  const list = new BlockList();
  const ranges = squidConfig(userData)
    .filter((line) => line.startsWith('acl forbidden dst '))
    .flatMap((line) => line.split(' ').slice(3));
  for (const range of ranges) {
    const [net = '', prefix = ''] = range.split('/');
    list.addSubnet(net, Number(prefix), isIPv6(net) ? 'ipv6' : 'ipv4');
  }
  return list;
};

const FORBIDDEN = {
  'the machine itself': ['127.0.0.1', '127.255.255.254', '0.0.0.0', '::1', '::'],
  'the metadata server and link-local': ['169.254.169.254', '169.254.0.1', 'fe80::1', 'febf::1'],
  'private networks': ['10.0.0.1', '172.16.0.1', '172.31.255.254', '192.168.0.1', 'fc00::1', 'fd12::1'],
  'carrier and test networks': ['100.64.0.1', '198.18.0.1', '192.0.0.8', '203.0.113.9'],
  'multicast and reserved': ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1'],
  'IPv6 that hides IPv4': ['64:ff9b::7f00:1', '2002:7f00:1::', '2001:0:1::'],
};
const ALLOWED = [
  '8.8.8.8',
  '172.32.0.1',
  '172.15.0.1',
  '100.128.0.1',
  '192.169.0.1',
  '2606:4700::1111',
  '2a00::1',
];

describe.each([
  ['squid.yaml', withPassword, 'authenticated'],
  ['the inline sample', byAddress, 'crawlers'],
])('user-data: %s', (_, userData, admitted) => {
  const config = squidConfig(userData);
  const access = config.filter((line) => line.startsWith('http_access '));

  test('is cloud-config that parses, with only known keys', () => {
    expect(userData.startsWith('#cloud-config\n')).toBe(true);
    expect(cloudConfig.safeParse(parse(userData)).error).toBeUndefined();
  });

  test.each(Object.entries(FORBIDDEN))('never leads to %s', (_what, addresses) => {
    const list = forbidden(userData);
    expect(addresses.filter((ip) => !list.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4'))).toEqual([]);
  });

  test('does lead to public addresses', () => {
    const list = forbidden(userData);
    expect(ALLOWED.filter((ip) => list.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4'))).toEqual([]);
  });

  test('refuses strangers first and everything else last', () => {
    expect(access).toEqual([
      `http_access deny !${admitted}`,
      'http_access deny manager',
      'http_access deny forbidden',
      'http_access deny CONNECT !tls_port',
      'http_access deny !web_port',
      `http_access allow ${admitted}`,
      'http_access deny all',
    ]);
  });

  test('tunnels to port 443 only, caches nothing and does not say for whom it asks', () => {
    expect(config).toEqual(
      expect.arrayContaining(['acl tls_port port 443', 'cache deny all', 'forwarded_for delete', 'via off']),
    );
  });

  test('takes its port from the metadata server', () => {
    expect(config[0]).toBe('http_port @PORT@');
    expect(userData).toContain('Metadata-Flavor: Google');
    expect(userData).toMatch(/proxy-port/);
  });
});

describe('user-data: squid.yaml', () => {
  const { write_files: files } = cloudConfig.parse(parse(withPassword));

  test('reads user name and password from the metadata server, and contains none', () => {
    const script = files.find(({ path }) => path.endsWith('configure-proxy'))?.content ?? '';
    expect(script).toContain('username=$(metadata proxy-username)');
    expect(script).toContain('password=$(metadata proxy-password)');
    expect(withPassword.match(/(username|password)=(?!\$\(metadata )/g)).toBeNull();
  });

  test('asks for Basic auth', () => {
    expect(squidConfig(withPassword)).toContain('acl authenticated proxy_auth REQUIRED');
  });

  test('leaves what is secret readable by root and Squid only', () => {
    const open = files.filter(({ permissions }) => !permissions.endsWith('00')).map(({ path }) => path);
    expect(open).toEqual(['/etc/systemd/system/squid.service.d/no-metadata.conf']);
    expect(withPassword).toContain('umask 077');
    expect(withPassword).toContain('chmod 0640 /etc/squid/users');
  });

  test('is what the Secret sample holds', async () => {
    const documents = parseAllDocuments(await read('samples/gcp-secrets.yaml'));
    const held = documents.flatMap((document) => {
      const data: unknown = document.toJS();
      const text = secretSample.parse(data).stringData?.['user-data'];
      return text === undefined ? [] : [text];
    });
    expect(held).toEqual([withPassword]);
  });
});
