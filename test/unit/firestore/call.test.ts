import { Firestore } from '@google-cloud/firestore';
import { describe, expect, it } from 'vitest';

import { errorChain, hasCode, SystemError } from '#shared/app/errors.ts';
import { closeFirestore, firestoreCall } from '#shared/firestore/client.ts';

const grpcError = (code: number): Error => Object.assign(new Error('from the server'), { code });

/** No call reaches it here: what it would have been asked is given instead. */
const unreached = (): Firestore => new Firestore({ projectId: 'nowhere' });

const failureOf = (call: () => Promise<unknown>, deadlineMs?: number): Promise<unknown> =>
  firestoreCall(unreached(), 'read it', call, deadlineMs).then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a call to Firestore', () => {
  it('gives what it was answered', async () => {
    expect(await firestoreCall(unreached(), 'read it', () => Promise.resolve(7))).toBe(7);
  });

  it('that is not answered in time is Transient, and says what it was', async () => {
    const error = await failureOf(() => new Promise(() => undefined), 5);
    expect(hasCode(error, 'Transient')).toBe(true);
    expect(error).toMatchObject({ message: 'Firestore: read it took longer than 5 ms' });
  });

  it('that fails after its time is over disturbs nobody', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    expect(hasCode(await failureOf(() => promise, 5), 'Transient')).toBe(true);
    // Unhandled, this would end the run.
    reject(grpcError(14));
    await expect(promise).rejects.toThrow('from the server');
  });

  it('row 33: that no index serves says so, and is no conflict that another try might mend', async () => {
    const cause = Object.assign(
      new Error('9 FAILED_PRECONDITION: The query requires an index. You can create it here: https://…'),
      { code: 9 },
    );
    const error = await failureOf(() => Promise.reject(cause));
    expect(hasCode(error, 'NotConfigured')).toBe(true);
    expect(errorChain(error).join('\n')).toContain('You can create it here');
  });

  it.each([
    [3, 'InvalidSpec'],
    [5, 'NotFound'],
    [6, 'Conflict'],
    [7, 'Unauthorised'],
    [9, 'Conflict'],
    [14, 'Transient'],
    [99, 'Transient'],
  ] as const)('that fails with gRPC code %i is %s', async (code, kind) => {
    expect(hasCode(await failureOf(() => Promise.reject(grpcError(code))), kind)).toBe(true);
  });

  it('keeps an error that is already one of ours', async () => {
    const error = new SystemError('InvalidSpec', 'ours');
    expect(await failureOf(() => Promise.reject(error))).toBe(error);
  });

  it('on a client that is closing is not made, since the library would end the process', async () => {
    const db = unreached();
    const closing = closeFirestore(db);
    const read = firestoreCall(db, 'read it', () => db.doc('any/one').get());
    await expect(read).rejects.toMatchObject({
      code: 'Transient',
      message: 'Firestore: read it: this instance is shutting down',
    });
    await closing;
  });

  it('is awaited by the closing of its client', async () => {
    const db = unreached();
    const { promise, resolve } = Promise.withResolvers<string>();
    const read = firestoreCall(db, 'read it', () => promise);
    const order: string[] = [];
    const closing = closeFirestore(db).then(() => order.push('closed'));
    await new Promise(setImmediate);
    order.push('answered');
    resolve('late');
    expect(await read).toBe('late');
    await closing;
    expect(order).toEqual(['answered', 'closed']);
  });
});
