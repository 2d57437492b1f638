import { describe, expect, it } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import { DeadlineExceeded } from '#shared/firestore/deadline.ts';
import { guarded, makeGuard } from '#shared/firestore/guard.ts';

const late = () => Promise.reject(new DeadlineExceeded('late'));

describe('a guard of a channel (row 25)', () => {
  it('speaks up once, after so many late calls in a row; any other answer starts the count again', async () => {
    let stuck = 0;
    const answers = [late, late, () => Promise.resolve(1), late, late];
    const store = guarded(
      { call: () => (answers.shift() ?? late)() },
      makeGuard(3, () => {
        stuck += 1;
      }),
    );
    for (let calls = 0; calls < 5; calls += 1) await store.call().catch(() => undefined);
    expect(stuck).toBe(0);
    for (let calls = 0; calls < 3; calls += 1) await store.call().catch(() => undefined);
    expect(stuck).toBe(1);
  });

  it("counts the library's own time-outs, and no refusal", async () => {
    let stuck = 0;
    const guard = makeGuard(2, () => {
      stuck += 1;
    });
    const timedOut = Object.assign(new Error('4 DEADLINE_EXCEEDED'), { code: 4 });
    const failures = [
      timedOut,
      new SystemError('Conflict', 'x'),
      timedOut,
      new SystemError('Transient', 'y', { cause: timedOut }),
    ];
    const store = guarded({ call: () => Promise.reject(failures.shift()) }, guard);
    for (let calls = 0; calls < 3; calls += 1) await store.call().catch(() => undefined);
    expect(stuck).toBe(0);
    await store.call().catch(() => undefined);
    expect(stuck).toBe(1);
  });

  it('with a span waits for it: many calls that ran out of time at once are one', async () => {
    let stuck = 0;
    let now = 0;
    const store = guarded(
      { call: late },
      makeGuard(
        2,
        () => {
          stuck += 1;
        },
        { ms: 20_000, clock: { monotonic: () => now } },
      ),
    );
    const many = () => Promise.allSettled(Array.from({ length: 80 }, () => store.call()));
    await many();
    now = 19_999;
    await many();
    expect(stuck).toBe(0);
    now = 20_000;
    await many();
    expect(stuck).toBe(1);
  });
});
