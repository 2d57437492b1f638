/** Providers whose calls are counted, by what became of them. */

import { SystemError } from '#shared/app/errors.ts';
import type { MachineProvider, OperationResult } from '#shared/domain/machine.ts';

import type { Providers } from './providers.ts';

/** `result`: `Ok`, the code of a `SystemError`, or how an operation that was waited for has ended. */
export type CountCall = (call: {
  readonly provider: string;
  readonly call: string;
  readonly result: string;
}) => void;

const endOf = (result: OperationResult): string =>
  result.kind === 'failed' ? result.behaviour : result.kind === 'succeeded' ? 'Ok' : result.kind;

const counted = (provider: MachineProvider, count: CountCall): MachineProvider => {
  const noted = async <T>(
    call: string,
    work: Promise<T>,
    resultOf: (value: T) => string = () => 'Ok',
  ): Promise<T> => {
    try {
      const value = await work;
      count({ provider: provider.name, call, result: resultOf(value) });
      return value;
    } catch (error) {
      count({ provider: provider.name, call, result: error instanceof SystemError ? error.code : 'Error' });
      throw error;
    }
  };
  return {
    name: provider.name,
    get: (...given) => noted('get', provider.get(...given)),
    create: (...given) => noted('create', provider.create(...given)),
    delete: (machine) => noted('delete', provider.delete(machine)),
    leftover: (...given) => noted('leftover', provider.leftover(...given)),
    deleteLeftover: (leftover) => noted('deleteLeftover', provider.deleteLeftover(leftover)),
    start: (machine) => noted('start', provider.start(machine)),
    wait: (...given) => noted('wait', provider.wait(...given), endOf),
    list: (uid) => noted('list', provider.list(uid)),
    listLeftovers: () => noted('listLeftovers', provider.listLeftovers()),
    close: () => provider.close(),
  };
};

/** The same providers; each call is counted when it has ended. */
export const countCalls = ({ gcp, kubernetes }: Providers, count: CountCall): Providers => ({
  ...(gcp ? { gcp: counted(gcp, count) } : {}),
  ...(kubernetes ? { kubernetes: counted(kubernetes, count) } : {}),
});
