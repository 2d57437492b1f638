/*
 * Where Google's emulators and their Java are. Plain JavaScript: the set-up reads it with whatever Node the machine
 * has, before any package is installed. Its types are in cloud-sdk.d.mts.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { findOnPath } from './locate.mjs';

/** @typedef {typeof import('./cloud-sdk.mjs')} Types */
/** @typedef {import('./cloud-sdk.mjs').Emulator} Emulator */

/** @type {readonly Emulator[]} */
const NAMES = ['firestore', 'pubsub'];

const PROGRAMS = {
  firestore: 'platform/cloud-firestore-emulator/cloud_firestore_emulator',
  pubsub: 'platform/pubsub-emulator/bin/cloud-pubsub-emulator',
};
const COMPONENTS = { firestore: 'cloud-firestore-emulator', pubsub: 'pubsub-emulator' };
const PACKAGES = {
  firestore: 'google-cloud-cli-firestore-emulator',
  pubsub: 'google-cloud-cli-pubsub-emulator',
};

/** @param {string} folder */
const isRoot = (folder) => existsSync(join(folder, 'lib', 'googlecloudsdk'));

/** @type {Types['sdkRoot']} */
export const sdkRoot = (env) => {
  const named = env['CLOUDSDK_ROOT_DIR'];
  if (named && isRoot(named)) return named;
  const gcloud = findOnPath('gcloud', env);
  if (gcloud === undefined) return undefined;
  // Asking gcloud takes a second, so the usual place beside it is looked at first.
  const beside = dirname(dirname(realpathSync(gcloud)));
  if (isRoot(beside)) return beside;
  const asked = spawnSync(gcloud, ['info', '--format=value(installation.sdk_root)'], {
    encoding: 'utf8',
    env,
  });
  const answer = asked.stdout.trim();
  return asked.status === 0 && answer !== '' ? answer : undefined;
};

/** @type {Types['emulatorProgram']} */
export const emulatorProgram = (root, name) => join(root, PROGRAMS[name]);

/** @type {Types['missingEmulators']} */
export const missingEmulators = (root) => NAMES.filter((name) => !existsSync(emulatorProgram(root, name)));

/**
 * True when the SDK came from a system package, whose gcloud cannot install components.
 *
 * @param {string} root
 */
const isPackaged = (root) => {
  try {
    const config = readFileSync(join(root, 'lib/googlecloudsdk/core/config.json'), 'utf8');
    return /"disable_updater":\s*true/u.test(config);
  } catch {
    return false;
  }
};

/** @type {Types['installCommand']} */
export const installCommand = (root, names) => {
  if (!isPackaged(root))
    return `gcloud components install ${names.map((name) => COMPONENTS[name]).join(' ')}`;
  const installer = existsSync('/usr/bin/dnf') ? 'dnf' : 'apt-get';
  return `sudo ${installer} install ${names.map((name) => PACKAGES[name]).join(' ')}`;
};

/** @type {Types['javaProgram']} */
export const javaProgram = (env) => {
  const home = env['JAVA_HOME'];
  return (home && findOnPath('java', { PATH: join(home, 'bin') })) || findOnPath('java', env);
};

/** @type {Types['javaMajor']} */
export const javaMajor = (printed) => {
  const match = /version "(\d+)(?:\.(\d+))?/u.exec(printed);
  if (match === null) return undefined;
  // Up to Java 8 versions were written 1.8.
  return Number(match[1] === '1' ? match[2] : match[1]);
};
