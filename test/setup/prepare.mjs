/*
 * Runs before `npm start` and `npm test`, with whatever Node the machine has and before any package is installed:
 * checks the machine, installs the packages when they are not those of the lockfile, and has the control plane built.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { samePackages } from './packages.mjs';
import { findMissing, report } from './prerequisites.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NODE = join(ROOT, 'node_modules', '.bin', 'node');

/**
 * @param {string} program
 * @param {string[]} args
 */
const run = (program, args) => {
  const ran = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit' });
  if (ran.status === 0) return;
  if (ran.error) console.error(`${program} could not be run: ${ran.error.message}`);
  process.exit(ran.status ?? 1);
};

/** npm writes its own list of what is there last of all: after an install that was cut short it is missing. */
const packagesAreCurrent = () => {
  const installed = join(ROOT, 'node_modules', '.package-lock.json');
  if (!existsSync(installed) || !existsSync(NODE)) return false;
  const libc = existsSync('/etc/alpine-release') ? 'musl' : 'glibc';
  return samePackages(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
    readFileSync(installed, 'utf8'),
    { os: process.platform, cpu: process.arch, libc },
  );
};

const command = process.argv[2] === 'start' ? 'start' : 'test';
const { text, fatal } = report(command, findMissing(command, process.env));
if (text !== '') (fatal ? console.error : console.log)(text);
if (fatal) process.exit(1);

if (!packagesAreCurrent()) {
  console.log('Installing the packages of package-lock.json (npm ci) ...');
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
}
run(NODE, ['test/control-plane/build.ts']);
