import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, onTestFinished, test } from 'vitest';

import { openShell, shellBlocks } from '#test/terraform/readme.ts';

const TEXT = `# Title

\`\`\`sh
first
\`\`\`

## One

1. A step:

   \`\`\`sh
   cat <<'END'
     kept
   END
   \`\`\`

\`\`\`hcl
nothing = true
\`\`\`

## Two

\`\`\`sh
second
\`\`\`
`;

test('shell blocks come with their section, without what indents them; others are left out', () => {
  expect(shellBlocks(TEXT)).toEqual([
    { section: '', script: 'first\n' },
    { section: 'One', script: "cat <<'END'\n  kept\nEND\n" },
    { section: 'Two', script: 'second\n' },
  ]);
});

const open = async () => {
  const dir = await mkdtemp(join(tmpdir(), 'egress-readme-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const stubs = { docker: { why: 'a test', prints: { 'inspect ': 'a digest' } } };
  return { dir, shell: await openShell({ dir, root: dir, env: {}, programs: ['mkdir'], stubs }) };
};

test('a block goes on where the one before it ended, with its variables, until sections begin anew', async () => {
  const { dir, shell } = await open();
  await shell.run('mkdir there\ncd there\nname="two words"\n');
  const next = await shell.run('echo "$PWD $name"\n');
  await shell.restart();
  const anew = await shell.run('echo "$PWD $name"\n');
  expect([next.text, anew.text]).toEqual([`${dir}/there two words\n`, `${dir} \n`]);
});

test('a command that is neither run nor listed fails, wherever in the block it stands', async () => {
  const { shell } = await open();
  const ran = await shell.run('helm install it\necho done\n');
  expect(ran.ok).toBe(false);
  expect(ran.text).toContain('helm: command not found');
  expect(ran.text).not.toContain('done');
});

test('such a command fails before `&&`, too', async () => {
  const { shell } = await open();
  const ran = await shell.run('helm install it && mkdir there\necho done\n');
  expect(ran.ok).toBe(false);
  expect(await shell.run('mkdir there\n')).toMatchObject({ ok: true });
});

test('a listed command is noted word by word, and prints what the next one needs', async () => {
  const { dir, shell } = await open();
  const ran = await shell.run('echo "got $(docker inspect "an image")"\n');
  expect(ran).toMatchObject({ ok: true, text: 'got a digest\n' });
  expect(ran.calls).toEqual([{ program: 'docker', args: ['inspect', 'an image'], cwd: dir }]);
});
