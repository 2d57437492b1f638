import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from 'vitest';

import { compilerProgress, elapsed } from '#test/control-plane/build.ts';
import { javaMajor } from '#test/setup/cloud-sdk.mjs';
import { cacheRoot, locateControlPlane, PROGRAMS, requiredVersion, versionKey } from '#test/setup/locate.mjs';
import { samePackages } from '#test/setup/packages.mjs';
import {
  atLeast,
  checkGo,
  checkJava,
  checkNode,
  checkPlatform,
  checkTerraform,
  report,
} from '#test/setup/prerequisites.mjs';

const folder = mkdtempSync(join(tmpdir(), 'set-up-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const GO_MOD = `module sample

require (
	go.etcd.io/etcd/server/v3 v3.7.3 // indirect
	k8s.io/kubernetes v1.37.2 // indirect
)

replace k8s.io/api => k8s.io/api v0.37.2
`;

describe('the name of a control plane build', () => {
  test('shows both versions and the architecture', () => {
    expect(versionKey(GO_MOD, ['sum'], 'x64')).toMatch(
      /^kubernetes-v1\.37\.2-etcd-v3\.7\.3-x64-[0-9a-f]{8}$/u,
    );
  });

  test('changes with anything that goes into the build, and with nothing else', () => {
    const key = versionKey(GO_MOD, ['sum', 'main'], 'x64');
    expect(versionKey(GO_MOD, ['sum', 'main'], 'x64')).toBe(key);
    const others = [
      versionKey(`${GO_MOD}\n`, ['sum', 'main'], 'x64'),
      versionKey(GO_MOD, ['sum2', 'main'], 'x64'),
      versionKey(GO_MOD, ['summain', ''], 'x64'),
      versionKey(GO_MOD, ['sum', 'main'], 'arm64'),
    ];
    expect(new Set([key, ...others]).size).toBe(5);
  });

  test('cannot be made from a go.mod that lacks a version', () => {
    expect(() => requiredVersion(GO_MOD, 'k8s.io/api')).toThrow('go.mod does not require k8s.io/api');
  });
});

const programsIn = (name: string, programs: readonly string[]): string => {
  const directory = join(folder, name);
  mkdirSync(directory, { recursive: true });
  for (const program of programs) {
    writeFileSync(join(directory, program), '#!/bin/sh\n');
    chmodSync(join(directory, program), 0o755);
  }
  return directory;
};

describe('the control plane is looked for', () => {
  const complete = programsIn('complete', PROGRAMS);
  const partial = programsIn('partial', ['etcd', 'kube-apiserver']);
  const empty = { XDG_CACHE_HOME: join(folder, 'cache'), PATH: '' };

  test('in KUBEBUILDER_ASSETS first', () => {
    const found = locateControlPlane({ ...empty, KUBEBUILDER_ASSETS: complete, PATH: complete });
    expect(found).toMatchObject({ found: true, from: 'KUBEBUILDER_ASSETS' });
    expect(found.programs.etcd).toBe(join(complete, 'etcd'));
  });

  test('on the PATH when KUBEBUILDER_ASSETS is incomplete, saying what it lacks', () => {
    const found = locateControlPlane({ ...empty, KUBEBUILDER_ASSETS: partial, PATH: complete });
    expect(found).toMatchObject({ found: true, from: 'PATH' });
    expect(found.notes.join()).toContain('it has no kube-controller-manager');
  });

  test('never as a mix of two places', () => {
    expect(locateControlPlane({ ...empty, PATH: partial }).found).toBe(false);
  });

  test('in the cache, where a build belongs as well', () => {
    const absent = locateControlPlane(empty);
    expect(absent.found).toBe(false);
    const directory = absent.found ? '' : absent.directory;
    expect(directory.startsWith(cacheRoot(empty))).toBe(true);
    programsIn(directory.slice(folder.length), PROGRAMS);
    expect(locateControlPlane(empty)).toMatchObject({ found: true, from: 'cache' });
  });
});

describe('prerequisites', () => {
  test.each([
    ['v18.0.0', [18], true],
    ['v16.20.2', [18], false],
    ['1.26', [1, 26], true],
    ['1.100.1', [1, 26], true],
    ['1.9', [1, 26], false],
    ['2.0', [1, 26], true],
    ['', [0], false],
  ])('version %j is at least %j: %j', (version, wanted, expected) => {
    expect(atLeast(version, wanted)).toBe(expected);
  });

  test.each([
    ['openjdk version "17.0.15" 2025-04-15', 17],
    ['Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21],
    ['java version "1.8.0_292"', 8],
    ['command not found', undefined],
  ])('the version of Java is read from %j', (printed, expected) => {
    expect(javaMajor(printed)).toBe(expected);
  });

  test('a machine that has everything gets no message', () => {
    const findings = [
      ...checkPlatform('linux'),
      ...checkNode('v20.20.2', '10.2.0'),
      ...checkJava(17),
      ...checkGo('go version go1.26.8 linux/amd64'),
      ...checkTerraform('Terraform v1.11.4\non linux_amd64', true),
    ];
    expect(report('test', findings)).toEqual({ text: '', fatal: false });
  });

  test.each([
    ['v20.19.0', true],
    ['v22.12.0', true],
    ['v24.0.0', true],
    ['v18.20.0', false],
    ['v20.18.3', false],
    ['v21.7.0', false],
    ['v22.11.0', false],
  ])('Node %s installs every native part of the tools: %j', (node, expected) => {
    expect(checkNode(node, '11.0.0').length === 0).toBe(expected);
  });

  test('everything that is missing is in one message, each with its command', () => {
    const { text, fatal } = report('start', [
      ...checkNode('v16.1.0', ''),
      ...checkJava(11),
      ...checkGo('go version go1.22.1 linux/amd64'),
    ]);
    expect(fatal).toBe(true);
    expect(text).toContain('npm start needs what is not on this machine');
    for (const part of [
      'this is v16.1.0',
      'npm: it is not',
      'this is Java 11',
      'this is Go 1.22.1',
      'nvm install',
    ]) {
      expect(text).toContain(part);
    }
  });

  test('a missing Terraform is said and goes on, but is an error in CI', () => {
    const here = report('test', checkTerraform('', false));
    expect(here).toMatchObject({ fatal: false });
    expect(here.text).toContain('left out; with CI=true this is an error');
    expect(report('test', checkTerraform('', true)).fatal).toBe(true);
  });
});

const lockfile = (packages: Record<string, object>): string => JSON.stringify({ packages });
const ONE = { version: '1.0.0', integrity: 'sha512-one' };
const TWO = { version: '2.0.0', integrity: 'sha512-two' };

const HERE = { os: 'linux', cpu: 'x64', libc: 'glibc' } as const;
const native = (os: string, cpu: string, libc?: string) => ({
  ...TWO,
  optional: true,
  os: [os],
  cpu: [cpu],
  ...(libc === undefined ? {} : { libc: [libc] }),
});

describe('installed packages', () => {
  const lock = lockfile({
    '': { name: 'root' },
    'node_modules/one': ONE,
    'node_modules/native': native('linux', 'x64', 'glibc'),
    'node_modules/native-musl': native('linux', 'x64', 'musl'),
    'node_modules/native-mac': native('darwin', 'x64'),
    'node_modules/below-another': { ...TWO, optional: true },
  });
  const all = { 'node_modules/one': ONE, 'node_modules/native': native('linux', 'x64', 'glibc') };

  test.each([
    ['all that this platform needs are there', true, all],
    [
      'those of other platforms are there too',
      true,
      { ...all, 'node_modules/native-mac': native('darwin', 'x64') },
    ],
    ['one is not', false, { 'node_modules/native': all['node_modules/native'] }],
    ["this platform's native part is not", false, { 'node_modules/one': ONE }],
    ['one has another version', false, { ...all, 'node_modules/one': { ...ONE, version: '1.0.1' } }],
    ['one has another content', false, { ...all, 'node_modules/one': { ...ONE, integrity: 'sha512-other' } }],
    ['one is left over', false, { ...all, 'node_modules/three': ONE }],
  ])('when %s, they are current: %j', (_name, expected, installed) => {
    expect(samePackages(lock, lockfile(installed), HERE)).toBe(expected);
  });

  test('a list that was cut short is not current', () => {
    expect(samePackages(lock, lock.slice(0, 40), HERE)).toBe(false);
  });
});

describe('the progress of a build', () => {
  test('is the download that it waits for, else the packages compiled', () => {
    expect(compilerProgress('')).toBe('working');
    expect(compilerProgress('go: downloading k8s.io/api v0.37.2\n')).toBe('downloading k8s.io/api v0.37.2');
    expect(compilerProgress('go: downloading a v1\nunicode\nk8s.io/api\n')).toBe('2 packages compiled');
  });

  test('is shown in minutes and seconds', () => {
    expect(elapsed(245_900)).toBe('4:05');
  });
});
