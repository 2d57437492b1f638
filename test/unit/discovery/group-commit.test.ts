import { describe, expect, it } from 'vitest';

import { noMetrics } from '#shared/app/metrics.ts';
import { SystemError } from '#shared/app/errors.ts';

import { makeGroupCommit } from '../../../functions/discovery/group-commit.ts';
import {
  acquireOf,
  endpoint,
  gate,
  leaseDocument,
  leaseId,
  releaseOf,
  renewOf,
  UID,
} from '../lease/builders.ts';
import { conflict, fakeLeases, lost } from './fakes.ts';

const ids = { token: () => '', uuid: () => '', fraction: () => 0 };

const make = (maxLeases = 200) => {
  const fake = fakeLeases(UID, leaseDocument({ gate: gate({ maxLeases }) }));
  const commits = makeGroupCommit({ ...fake, ids, metrics: noMetrics });
  const submit = (operation: ReturnType<typeof acquireOf>) => commits.submit(UID, { operation });
  return { fake, commits, submit };
};
const liveIn = (fake: ReturnType<typeof fakeLeases>): number =>
  Object.keys(fake.stored()?.document.leases ?? {}).length;

/** What a request goes through on its way in and an answer on its way out. */
const onItsWay = async (): Promise<void> => {
  for (let steps = 0; steps < 20; steps += 1) await Promise.resolve();
};

describe('group commit', () => {
  it('64 acquires at once share 2 commits and 1 read', async () => {
    const { fake, submit } = make();
    const outcomes = await Promise.all(Array.from({ length: 64 }, (_, n) => submit(acquireOf(n))));
    expect(outcomes.every(({ kind }) => kind === 'granted')).toBe(true);
    expect(fake.calls).toEqual(['read', 'commit', 'commit']);
    expect(liveIn(fake)).toBe(64);
  });

  it('callers that come back as soon as they are answered share the very next commit', async () => {
    const { fake, submit } = make();
    const rounds = 10;
    const caller = async (first: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        expect((await submit(acquireOf(first + round))).kind).toBe('granted');
        await onItsWay();
        await submit(releaseOf(first + round));
        await onItsWay();
      }
    };
    await Promise.all(Array.from({ length: 32 }, (_, n) => caller(n * rounds)));
    const commits = fake.calls.filter((call) => call === 'commit').length;
    // One for the first caller alone, and then one for each step of all.
    expect(commits).toBeLessThanOrEqual(2 * rounds + 2);
  });

  it('a warm acquire is 0 reads and 1 write', async () => {
    const { fake, submit } = make();
    await submit(acquireOf(1));
    fake.calls.length = 0;
    expect((await submit(acquireOf(2))).kind).toBe('granted');
    expect(fake.calls).toEqual(['commit']);
  });

  it('a refusal writes nothing', async () => {
    const { fake, submit } = make(1);
    await submit(acquireOf(1));
    fake.calls.length = 0;
    expect((await submit(acquireOf(2))).kind).toBe('full');
    expect(fake.calls).toEqual([]);
  });

  it('what another instance wrote is met by the precondition, and judged again', async () => {
    const { fake, submit } = make(2);
    await submit(acquireOf(1));
    fake.write((before) => ({
      ...before,
      gate: gate({ open: false, closedReason: 'Unhealthy', maxLeases: 2 }),
    }));
    expect(await submit(acquireOf(2))).toMatchObject({ kind: 'closed', reason: 'Unhealthy' });
    expect(liveIn(fake)).toBe(1);
  });

  it('says that a lease is over only after a fresh read', async () => {
    const { fake, submit, commits } = make(2);
    const other = makeGroupCommit({ ...fake, ids, metrics: noMetrics });
    await submit(acquireOf(1));
    await other.submit(UID, { operation: acquireOf(2) });
    expect((await submit(renewOf(2))).kind).toBe('renewed');
    expect(await commits.submit(UID, { operation: renewOf(9) })).toMatchObject({
      kind: 'ended',
      reason: 'Unknown',
    });
  });

  it.each([
    ['the library repeated the commit and got a conflict with itself', conflict],
    ['the reply was lost', lost],
  ])(
    'a stored write whose call failed is found by its id and not made twice: %s (row 36)',
    async (_what, error) => {
      const { fake, submit } = make(2);
      fake.faults.push({ stored: true, error: error() });
      expect(await submit(acquireOf(1))).toMatchObject({ kind: 'granted', lease: { id: leaseId(1) } });
      expect(liveIn(fake)).toBe(1);
      expect(fake.calls.filter((call) => call === 'commit')).toHaveLength(1);
    },
  );

  it('a commit that was not stored is made again (row 28)', async () => {
    const { fake, submit } = make(2);
    fake.faults.push({ stored: false, error: lost() }, { stored: false, error: conflict() });
    expect((await submit(acquireOf(1))).kind).toBe('granted');
    expect(liveIn(fake)).toBe(1);
  });

  it('a failure that no retry mends reaches everybody who waits, and nobody after them', async () => {
    const { fake, submit } = make();
    fake.faults.push({ stored: false, error: new SystemError('Unauthorised', 'no') });
    await expect(submit(acquireOf(1))).rejects.toThrow('no');
    expect((await submit(acquireOf(2))).kind).toBe('granted');
  });

  it('a key that another request was granted under is answered from its entry, the rest of the batch goes on', async () => {
    const { fake, commits, submit } = make();
    const theirs = { id: 'key', bodyHash: 'b', leaseId: leaseId(99) };
    fake.entries.set('key', theirs);
    const mine = commits.submit(UID, {
      operation: acquireOf(1),
      entry: { id: 'key', bodyHash: 'b', leaseId: leaseId(1) },
    });
    const others = [submit(acquireOf(2)), submit(acquireOf(3))];
    expect(await mine).toEqual({ kind: 'replay', entry: theirs });
    expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(['granted', 'granted']);
    expect(liveIn(fake)).toBe(2);
  });

  it("an entry that this request's lost commit stored is not stored again", async () => {
    const { fake, commits } = make();
    fake.faults.push({ stored: true, error: lost() });
    const entry = { id: 'key', bodyHash: 'b', leaseId: leaseId(1) };
    expect((await commits.submit(UID, { operation: acquireOf(1), entry })).kind).toBe('granted');
    expect(fake.entries.get('key')).toEqual(entry);
  });

  it('releases in a batch come before acquires', async () => {
    const { fake, submit } = make(1);
    await submit(acquireOf(1));
    const blocker = submit(renewOf(1));
    const [granted] = await Promise.all([submit(acquireOf(2)), submit(releaseOf(1)), blocker]);
    expect(granted.kind).toBe('granted');
    expect(liveIn(fake)).toBe(1);
  });

  it("asks for Firestore's time again when its last word is older than a minute (row 37)", async () => {
    const { fake, submit } = make(1);
    await submit(acquireOf(1));
    fake.calls.length = 0;
    fake.advance(60_001);
    expect((await submit(renewOf(1))).kind).toBe('ended');
    expect(fake.calls).toEqual(['read']);
  });

  it('a lease document that was swept is missing, although it is remembered', async () => {
    const { fake, submit } = make();
    await submit(acquireOf(1));
    fake.remove();
    expect(await submit(acquireOf(2))).toEqual({ kind: 'missing' });
  });

  it('binds a grant to the endpoint of the version that it committed against (B1)', async () => {
    const { fake, submit } = make(5);
    await submit(acquireOf(1));
    fake.write((before) => ({ ...before, gate: gate({ endpoint: endpoint('e2', '203.0.113.8') }) }));
    expect(await submit(acquireOf(2))).toMatchObject({
      lease: { endpoint: { id: 'e2', host: '203.0.113.8' } },
    });
  });
});

const yielding = (n: number) => ({ operation: acquireOf(n), mayYield: true });

/** What another instance writes. */
const intrude = (fake: ReturnType<typeof fakeLeases>): void =>
  fake.write((before) => ({ ...before, fence: before.fence + 1 }));

const begin = async () => {
  const made = make();
  await made.submit(acquireOf(1));
  intrude(made.fake);
  return made;
};

describe('two instances that begin to use one proxy', () => {
  it('are told apart by the first commit: who comes second goes elsewhere and writes nothing', async () => {
    const { fake, commits } = await begin();
    fake.calls.length = 0;
    expect(await commits.submit(UID, yielding(2))).toEqual({ kind: 'contended' });
    expect(fake.calls.filter((call) => call === 'commit')).toHaveLength(1);
    expect(liveIn(fake)).toBe(1);
    expect(commits.known(UID).isContended).toBe(true);
  });

  it('share it when the second one has no other, or knew that it is shared', async () => {
    const { fake, commits, submit } = await begin();
    expect((await submit(acquireOf(2))).kind).toBe('granted');
    intrude(fake);
    expect((await commits.submit(UID, yielding(3))).kind).toBe('granted');
    expect(liveIn(fake)).toBe(3);
  });

  it('leave the others of the same commit alone', async () => {
    const { fake, commits, submit } = make();
    const first = submit(acquireOf(1));
    const together = Promise.all([
      submit(renewOf(1)),
      commits.submit(UID, yielding(2)),
      submit(acquireOf(3)),
    ]);
    await first;
    intrude(fake);
    expect((await together).map(({ kind }) => kind)).toEqual(['renewed', 'contended', 'granted']);
    expect(liveIn(fake)).toBe(2);
  });

  it('take no lease away that a commit stored before it was told of a conflict (row 36)', async () => {
    const { fake, commits, submit } = make();
    await submit(acquireOf(1));
    fake.faults.push({ stored: true, error: conflict() });
    expect((await commits.submit(UID, yielding(2))).kind).toBe('granted');
    expect(liveIn(fake)).toBe(2);
  });
});
