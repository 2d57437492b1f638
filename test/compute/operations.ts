/** Operations: PENDING, RUNNING, DONE, with the work at the end and its errors inside. */

import { operationError, stockOutError, type OperationError } from './errors.ts';
import type { ApiMethod, Occasion } from './faults.ts';
import { randomHex, type Operation, type World } from './world.ts';

const MAX_OPERATIONS = 5_000;

export interface OperationRequest {
  readonly type: string;
  readonly method: ApiMethod | undefined;
  readonly zone: string;
  /** Path of what is worked on, and its id. */
  readonly target: string;
  readonly targetId: string;
  readonly name: string;
  readonly requestId?: string | undefined;
  readonly halfway?: () => void;
  /** The work, done when the operation ends well; what it returns makes it fail after all. */
  readonly finish: () => OperationError | undefined;
  /** Done instead when the operation fails. */
  readonly fail?: () => void;
}

/** The error that a fault prescribes for this operation. */
const scriptedError = (world: World, occasion: Occasion): OperationError | undefined => {
  if (occasion.method === 'instances.insert' || occasion.method === 'instances.start') {
    const stockOut = world.faults.strike('stockOut', occasion);
    if (stockOut) {
      const zone = `projects/${world.projectId}/zones/${occasion.zone ?? ''}`;
      return stockOutError(zone, stockOut.details ?? false, stockOut.available);
    }
  }
  if (occasion.method === 'instances.insert') {
    const region = (occasion.zone ?? '').slice(0, -2);
    const quota = world.faults.strike('quota', occasion);
    if (quota) {
      return operationError(
        'QUOTA_EXCEEDED',
        `Quota 'CPUS' exceeded. Limit: 24.0 in region ${region}.`,
        403,
        'FORBIDDEN',
      );
    }
  }
  const scripted = world.faults.strike('operationError', occasion);
  return scripted && operationError(scripted.code, scripted.message, scripted.httpStatus);
};

const end = (world: World, operation: Operation, error: OperationError | undefined): void => {
  operation.error = error;
  operation.status = 'DONE';
  operation.endTime = world.now();
  operation.startTime ??= operation.endTime;
  for (const done of operation.waiters) done();
  operation.waiters.clear();
};

const remember = (world: World, operation: Operation): void => {
  world.operations.set(operation.name, operation);
  if (operation.requestId !== undefined) world.requests.set(operation.requestId, operation.name);
  if (world.operations.size <= MAX_OPERATIONS) return;
  const [oldest] = world.operations.values();
  if (!oldest) return;
  world.operations.delete(oldest.name);
  if (oldest.requestId !== undefined) world.requests.delete(oldest.requestId);
};

/** Starts an operation; faults may make it slow or make it fail. */
export const startOperation = (world: World, request: OperationRequest): Operation => {
  const occasion = { zone: request.zone, method: request.method, name: request.name };
  const error = scriptedError(world, occasion);
  const duration = world.faults.strike('slowOperation', occasion)?.ms ?? world.operationMs;
  const now = world.now();
  const operation: Operation = {
    id: world.nextId(),
    name: `operation-${now}-${randomHex(7)}-${randomHex(4)}-${randomHex(4)}`,
    zone: request.zone,
    type: request.type,
    target: request.target,
    targetId: request.targetId,
    requestId: request.requestId,
    insertTime: now,
    startTime: undefined,
    endTime: undefined,
    status: 'PENDING',
    error: undefined,
    waiters: new Set(),
  };
  remember(world, operation);
  // Late timers of different lengths can come in any order.
  world.timers.after(Math.floor(duration / 5), () => {
    if (operation.status !== 'PENDING') return;
    operation.status = 'RUNNING';
    operation.startTime = world.now();
  });
  world.timers.after(Math.floor(duration / 2), () => request.halfway?.());
  world.timers.after(duration, () => {
    if (error) request.fail?.();
    end(world, operation, error ?? request.finish());
  });
  return operation;
};

/** The operation that this request id has started before. */
export const replayed = (world: World, requestId: string | undefined): Operation | undefined =>
  requestId === undefined ? undefined : world.operations.get(world.requests.get(requestId) ?? '');

/** Resolves when the operation is done or `ms` have passed. */
export const whenDone = (world: World, operation: Operation, ms: number): Promise<void> =>
  new Promise((resolve) => {
    if (operation.status === 'DONE') {
      resolve();
      return;
    }
    const done = (): void => {
      operation.waiters.delete(done);
      resolve();
    };
    operation.waiters.add(done);
    world.timers.after(ms, done);
  });
