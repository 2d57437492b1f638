/*
 * What the machine has to have, and how what it lacks is said. Plain JavaScript: it runs with whatever Node the machine
 * has, before any package is installed. Its types are in prerequisites.d.mts.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

import { installCommand, javaMajor, javaProgram, missingEmulators, sdkRoot } from './cloud-sdk.mjs';
import { findOnPath, locateControlPlane, PROGRAMS } from './locate.mjs';

/** @typedef {typeof import('./prerequisites.mjs')} Types */
/** @typedef {import('./prerequisites.mjs').Finding} Finding */
/** @typedef {import('./locate.mjs').Environment} Environment */

const NPM = 9;
const JAVA = 17;
const GO = /** @type {const} */ ([1, 26]);

/** @type {Types['atLeast']} */
export const atLeast = (version, wanted) => {
  const parts = (version.match(/\d+/gu) ?? []).map(Number);
  for (const [index, part] of wanted.entries()) {
    const have = parts[index] ?? 0;
    if (have !== part) return have > part;
  }
  return parts.length > 0;
};

/**
 * What a program prints, on either stream; empty when it cannot be run.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {Environment} env
 */
const printed = (program, args, env) => {
  const ran = spawnSync(program, args, { encoding: 'utf8', env });
  return ran.status === 0 ? `${ran.stdout}${ran.stderr}`.trim() : '';
};

/** @type {(debian: string, fedora: string) => string} */
const systemInstall = (debian, fedora) =>
  existsSync('/usr/bin/dnf') ? `sudo dnf install ${fedora}` : `sudo apt-get install ${debian}`;

/** @type {Types['checkPlatform']} */
export const checkPlatform = (platform) =>
  platform === 'linux'
    ? []
    : [
        {
          what: 'Linux',
          why: `the local stack uses addresses and process control that ${platform} does not have`,
          fix: 'run it in a Linux machine, a container or WSL 2',
        },
      ];

/** @type {Types['checkNode']} */
export const checkNode = (node, npm) => {
  const fix = 'nvm install 24   (or a package from https://nodejs.org/en/download)';
  /** @type {Finding[]} */
  const findings = [];
  // Under any other npm leaves out native parts of the tools, without an error.
  const fits = atLeast(node, [22, 12]) || (atLeast(node, [20, 19]) && !atLeast(node, [21]));
  if (!fits) {
    findings.push({
      what: 'Node.js 20.19 and up, or 22.12 and newer, to install the packages (24, for the rest, comes with them)',
      why: `this is ${node}`,
      fix,
    });
  }
  if (npm === '') findings.push({ what: 'npm', why: 'it is not on the PATH', fix });
  else if (!atLeast(npm, [NPM])) {
    findings.push({ what: `npm ${NPM} or newer`, why: `this is ${npm}`, fix: 'npm install --global npm@11' });
  }
  return findings;
};

const SDK_DOWNLOAD = `https://dl.google.com/dl/cloudsdk/channels/rapid/downloads/google-cloud-cli-linux-${
  process.arch === 'arm64' ? 'arm' : 'x86_64'
}.tar.gz`;

/** @param {Environment} env */
const checkCloudSdk = (env) => {
  const root = sdkRoot(env);
  if (root === undefined) {
    return [
      {
        what: 'the Google Cloud SDK with its Firestore and Pub/Sub emulators',
        why: 'there is no gcloud on the PATH',
        fix: [
          `curl -sSL ${SDK_DOWNLOAD} | tar -xz -C "$HOME"`,
          'export PATH="$HOME/google-cloud-sdk/bin:$PATH"',
          'gcloud components install cloud-firestore-emulator pubsub-emulator',
        ].join('\n'),
      },
    ];
  }
  const missing = missingEmulators(root);
  if (missing.length === 0) return [];
  const names = missing.map((name) => ({ firestore: 'Firestore', pubsub: 'Pub/Sub' })[name]).join(' and ');
  return [
    {
      what: `the ${names} emulator${missing.length > 1 ? 's' : ''} of the Google Cloud SDK`,
      why: `not below ${root}`,
      fix: installCommand(root, missing),
    },
  ];
};

/** @type {Types['checkJava']} */
export const checkJava = (version) => {
  if (version !== undefined && version >= JAVA) return [];
  return [
    {
      what: `Java ${JAVA} or newer, for the emulators`,
      why: version === undefined ? 'there is no java in JAVA_HOME or on the PATH' : `this is Java ${version}`,
      fix: systemInstall('openjdk-17-jre-headless', 'java-17-openjdk-headless'),
    },
  ];
};

/** @type {Types['checkGo']} */
export const checkGo = (printedVersion) => {
  const version = /go(\d+\.\d+(?:\.\d+)?)/u.exec(printedVersion)?.[1];
  if (version !== undefined && atLeast(version, GO)) return [];
  const wanted = GO.join('.');
  return [
    {
      what: `Go ${wanted} or newer, to build the Kubernetes control plane once`,
      why: version === undefined ? 'there is no go on the PATH' : `this is Go ${version}`,
      fix: [
        `curl -sSL https://go.dev/dl/go${wanted}.0.linux-${process.arch === 'arm64' ? 'arm64' : 'amd64'}.tar.gz | sudo tar -xz -C /usr/local`,
        'export PATH="/usr/local/go/bin:$PATH"',
        `(or, without Go: export KUBEBUILDER_ASSETS=<a folder with ${PROGRAMS.join(', ')}>)`,
      ].join('\n'),
    },
  ];
};

/** @type {Types['checkTerraform']} */
export const checkTerraform = (printedVersion, ci) => {
  const version = /Terraform v(\d+\.\d+\.\d+)/u.exec(printedVersion)?.[1];
  if (version !== undefined && atLeast(version, [1, 11])) return [];
  return [
    {
      what: 'Terraform 1.11 or newer, for the Terraform checks',
      why: version === undefined ? 'there is no terraform on the PATH' : `this is ${version}`,
      fix: 'install it as https://developer.hashicorp.com/terraform/install says',
      ...(ci ? {} : { optional: 'these checks are left out; with CI=true this is an error' }),
    },
  ];
};

/** @type {Types['findMissing']} */
export const findMissing = (command, env) => {
  const platform = checkPlatform(process.platform);
  // The other advice is for Linux.
  if (platform.length > 0) return platform;
  const java = javaProgram(env);
  return [
    ...checkNode(process.version, printed('npm', ['--version'], env)),
    ...checkCloudSdk(env),
    ...checkJava(java === undefined ? undefined : javaMajor(printed(java, ['-version'], env))),
    // An older Go that would fetch the right one by itself is not relied on.
    ...(locateControlPlane(env).found
      ? []
      : checkGo(printed('go', ['version'], { ...env, GOTOOLCHAIN: 'local' }))),
    ...(command === 'test'
      ? checkTerraform(
          findOnPath('terraform', env) ? printed('terraform', ['version'], env) : '',
          env['CI'] === 'true',
        )
      : []),
  ];
};

/** @param {string} text */
const indent = (text) => text.replace(/^/gmu, '      ');

/** @param {Finding} finding */
const describe = ({ what, why, fix, optional }) => {
  const title = `  - ${what}: ${why}`;
  return optional === undefined ? `${title}\n${indent(fix)}` : `${title}; ${optional}\n${indent(fix)}`;
};

/** @type {Types['report']} */
export const report = (command, findings) => {
  const required = findings.filter(({ optional }) => optional === undefined);
  const optional = findings.filter((finding) => finding.optional !== undefined);
  const call = command === 'start' ? 'npm start' : 'npm test';
  const parts = [];
  if (required.length > 0) {
    parts.push(
      `${call} needs what is not on this machine. Nothing has been started.`,
      ...required.map(describe),
    );
    parts.push(`Then run ${call} again.`);
  }
  if (optional.length > 0) parts.push('Not required:', ...optional.map(describe));
  return { text: parts.join('\n'), fatal: required.length > 0 };
};
