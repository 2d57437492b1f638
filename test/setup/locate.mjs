/*
 * Where the control plane's programs are. Plain JavaScript: the set-up reads it with whatever Node the machine has,
 * before any package is installed. Its types are in locate.d.mts.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @typedef {typeof import('./locate.mjs')} Types */
/** @typedef {import('./locate.mjs').Environment} Environment */
/** @typedef {import('./locate.mjs').Programs} Programs */

/** @type {Types['PROGRAMS']} */
export const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager'];

/** @type {Types['SOURCES']} */
export const SOURCES = fileURLToPath(new URL('../control-plane', import.meta.url));

/** @param {string} path */
const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** @type {Types['findOnPath']} */
export const findOnPath = (program, env) =>
  (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, program))
    .find((path) => isExecutable(path));

/** @type {Types['requiredVersion']} */
export const requiredVersion = (goMod, module) => {
  const versions = goMod.split('\n').map((line) => {
    const [name, version = ''] = line
      .trim()
      .replace(/^require\s+/u, '')
      .split(/\s+/u);
    return name === module && /^v\d/u.test(version) ? version : undefined;
  });
  const found = versions.find((version) => version !== undefined);
  if (found === undefined) throw new Error(`go.mod does not require ${module}`);
  return found;
};

/** @type {Types['linkerFlags']} */
export const linkerFlags = (goMod) =>
  // Without a version stamped in, kubectl cannot parse what the server says it is.
  `-s -w -X k8s.io/component-base/version.gitVersion=${requiredVersion(goMod, 'k8s.io/kubernetes')}`;

/** @type {Types['versionKey']} */
export const versionKey = (goMod, otherSources, arch) => {
  const digest = createHash('sha256');
  for (const text of [goMod, ...otherSources, linkerFlags(goMod), arch])
    digest.update(`${text.length}:${text}`);
  const kubernetes = requiredVersion(goMod, 'k8s.io/kubernetes');
  const etcd = requiredVersion(goMod, 'go.etcd.io/etcd/server/v3');
  return `kubernetes-${kubernetes}-etcd-${etcd}-${arch}-${digest.digest('hex').slice(0, 8)}`;
};

/** @type {Types['cacheRoot']} */
export const cacheRoot = (env) =>
  join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'egress-proxies', 'control-plane');

/** @param {string} name */
const source = (name) => readFileSync(join(SOURCES, name), 'utf8');

/** @type {Types['cacheDirectory']} */
export const cacheDirectory = (env) =>
  join(
    cacheRoot(env),
    versionKey(source('go.mod'), [source('go.sum'), source('etcd/main.go')], process.arch),
  );

/** @type {(path: (program: import('./locate.mjs').Program) => string) => Programs} */
const programsAt = (path) => ({
  etcd: path('etcd'),
  'kube-apiserver': path('kube-apiserver'),
  'kube-controller-manager': path('kube-controller-manager'),
});

/** @param {Programs} programs */
const missing = (programs) => PROGRAMS.filter((name) => !isExecutable(programs[name]));

/** @type {Types['locateControlPlane']} */
export const locateControlPlane = (env) => {
  /** @type {string[]} */
  const notes = [];
  const assets = env['KUBEBUILDER_ASSETS'];
  if (assets) {
    const programs = programsAt((name) => resolve(assets, name));
    const lacking = missing(programs);
    if (lacking.length === 0) return { found: true, from: 'KUBEBUILDER_ASSETS', programs, notes };
    notes.push(`KUBEBUILDER_ASSETS=${assets} is not used: it has no ${lacking.join(', no ')}`);
  }
  const installed = programsAt((name) => findOnPath(name, env) ?? '');
  if (missing(installed).length === 0) return { found: true, from: 'PATH', programs: installed, notes };
  const directory = cacheDirectory(env);
  const programs = programsAt((name) => join(directory, name));
  if (missing(programs).length === 0) return { found: true, from: 'cache', programs, notes };
  return { found: false, directory, programs, notes };
};
