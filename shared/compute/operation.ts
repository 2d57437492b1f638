/** From an operation as the API shows it to its result. */

import { z } from 'zod';

import type { OperationResult } from '#shared/domain/machine.ts';

import { behaviourOf } from './errors.ts';

const detailSchema = z.object({
  errorInfo: z.object({ metadatas: z.record(z.string(), z.string()).nullish() }).nullish(),
});
const errorSchema = z.object({
  code: z.string().nullish(),
  message: z.string().nullish(),
  errorDetails: z.array(detailSchema).nullish(),
});

export const operationSchema = z.object({
  name: z.string().nullish(),
  status: z.union([z.string(), z.number()]).nullish(),
  operationType: z.string().nullish(),
  error: z.object({ errors: z.array(errorSchema).nullish() }).nullish(),
  httpErrorStatusCode: z.number().nullish(),
  httpErrorMessage: z.string().nullish(),
});
export type Operation = z.infer<typeof operationSchema>;

/** A delete that finds nothing has reached what it was for. */
const isAlreadyGone = (operation: Operation, code: string): boolean =>
  operation.operationType === 'delete' && code === 'RESOURCE_NOT_FOUND';

/** The instance itself went away while it was worked on: nothing about it is wrong. */
const isOwnInstanceGone = (code: string, message: string): boolean =>
  code === 'RESOURCE_NOT_FOUND' && message.includes('/instances/');

/** The first text that says something. */
const firstText = (...texts: readonly (string | null | undefined)[]): string =>
  texts.find((text) => text !== undefined && text !== null && text !== '') ?? '';

const ZONE_NAME = /\b[a-z]+-[a-z]+\d+-[a-z]\b/gu;

/** Zones named in the text or in the details of a stock-out; the one that was asked may be among them. */
const zonesOf = (operation: Operation, message: string): readonly string[] => {
  const details = (operation.error?.errors ?? []).flatMap(({ errorDetails }) => errorDetails ?? []);
  const available = details.map(({ errorInfo }) => errorInfo?.metadatas?.['zonesAvailable'] ?? '');
  return [...new Set([...available, message].flatMap((text) => text.match(ZONE_NAME) ?? []))];
};

const failureOf = (operation: Operation): OperationResult => {
  const errors = operation.error?.errors ?? [];
  const httpStatus = operation.httpErrorStatusCode ?? undefined;
  const code = firstText(errors[0]?.code, operation.httpErrorMessage, String(httpStatus));
  const texts = errors.map((error) => firstText(error.message)).filter((text) => text !== '');
  const message = firstText(texts.join(' '), operation.httpErrorMessage, code);
  if (isAlreadyGone(operation, code)) return { kind: 'succeeded' };
  const behaviour = isOwnInstanceGone(code, message) ? 'Transient' : behaviourOf(code, httpStatus);
  const zones = behaviour === 'CapacityUnavailable' ? zonesOf(operation, message) : [];
  return { kind: 'failed', behaviour, code, message, ...(zones.length > 0 ? { zones } : {}) };
};

/** What has become of the operation; one that is done can have failed, with the reasons inside. */
export const resultOf = (operation: Operation): OperationResult => {
  if (operation.status !== 'DONE') return { kind: 'running' };
  const hasFailed = (operation.error?.errors ?? []).length > 0 || (operation.httpErrorStatusCode ?? 0) >= 400;
  return hasFailed ? failureOf(operation) : { kind: 'succeeded' };
};
