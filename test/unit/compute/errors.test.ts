import { describe, expect, test } from 'vitest';

import { SystemError } from '#shared/app/errors.ts';
import { toSystemError } from '#shared/compute/errors.ts';
import { resultOf } from '#shared/compute/operation.ts';

const payload = (status: number, reason: string, message: string): string =>
  JSON.stringify({ error: { code: status, message, errors: [{ reason, message, domain: 'global' }] } });

/** As google-gax throws it. */
const vendorError = (status: number, reason: string, message: string): Error =>
  Object.assign(new Error(message), {
    httpStatusCode: status,
    [Symbol.for('google-gax.rawHttpResponsePayload')]: payload(status, reason, message),
  });

const INSTANCE = "The resource 'projects/p/zones/z/instances/n' was not found";

describe('an error of a call', () => {
  test.each([
    [403, 'rateLimitExceeded', 'Rate Limit Exceeded', 'Transient'],
    [403, 'quotaExceeded', "Quota 'CPUS' exceeded.", 'QuotaExceeded'],
    [403, 'forbidden', "Required 'compute.instances.get' permission", 'Unauthorised'],
    [403, 'accessNotConfigured', 'Compute Engine API has not been used in project 1', 'NotConfigured'],
    [401, 'authError', 'Invalid Credentials', 'Unauthorised'],
    [400, 'invalid', "Invalid value for field 'resource.machineType'", 'InvalidSpec'],
    [400, 'resourceNotReady', "The resource 'x' is not ready", 'Transient'],
    [409, 'alreadyExists', 'already exists', 'Conflict'],
    [412, 'conditionNotMet', 'fingerprint', 'Conflict'],
    [429, 'rateLimitExceeded', 'Too many requests', 'Transient'],
    [500, 'internalError', 'Internal error', 'Transient'],
    [503, 'backendError', 'unavailable', 'Transient'],
    [503, 'x', "The zone 'z' does not have enough resources available", 'CapacityUnavailable'],
  ])('%i %s is what it asks of us (%s): %s', (status, reason, message, code) => {
    const error = toSystemError(vendorError(status, reason, message), 'insert');
    expect(error.code).toBe(code);
    expect(error.provider).toEqual({ code: reason, message });
    expect(error.cause).toBeInstanceOf(Error);
  });

  test.each([
    ['get', INSTANCE, 'NotFound'],
    ['insert', "The resource 'projects/i/global/images/family/x' was not found", 'InvalidSpec'],
    ['get', "The resource 'projects/p' was not found", 'NotConfigured'],
    ['insert', "The resource 'projects/p' was not found", 'NotConfigured'],
    ['get', "The resource 'projects/p/zones/z' was not found", 'InvalidSpec'],
    ['get', 'Error response from RPC Get with status 404 could not be decoded: <html>', 'Transient'],
  ])('row 43: a 404 of %s (%s) is %s', (call, message, code) => {
    expect(toSystemError(vendorError(404, 'notFound', message), call).code).toBe(code);
  });

  test('row 43: a rate limit is known by its text where the reason is lost', () => {
    const error = Object.assign(new Error('Rate Limit Exceeded'), { httpStatusCode: 403 });
    expect(toSystemError(error, 'delete').code).toBe('Transient');
  });

  test('no answer at all is transient', () => {
    const error = toSystemError(new Error('socket hang up'), 'get');
    expect(error.code).toBe('Transient');
    expect(error.provider?.code).toBe('NoAnswer');
  });

  test('one of ours stays what it is', () => {
    const ours = new SystemError('InvalidSpec', 'too big');
    expect(toSystemError(ours, 'insert')).toBe(ours);
  });
});

const done = (code: string, message = 'why', httpErrorStatusCode = 400): Parameters<typeof resultOf>[0] => ({
  name: 'operation-1',
  status: 'DONE',
  operationType: 'insert',
  error: { errors: [{ code, message }] },
  httpErrorStatusCode,
  httpErrorMessage: 'BAD REQUEST',
});

describe('the end of an operation', () => {
  test.each([
    ['ZONE_RESOURCE_POOL_EXHAUSTED', 503, 'CapacityUnavailable'],
    ['ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS', 503, 'CapacityUnavailable'],
    ['RESOURCE_POOL_EXHAUSTED', 503, 'CapacityUnavailable'],
    ['QUOTA_EXCEEDED', 403, 'QuotaExceeded'],
    ['IP_SPACE_EXHAUSTED', 400, 'QuotaExceeded'],
    ['RESOURCE_ALREADY_EXISTS', 409, 'Conflict'],
    ['INTERNAL_ERROR', 500, 'Transient'],
    ['RATE_LIMIT_EXCEEDED', 403, 'Transient'],
    ['INVALID_USAGE', 400, 'InvalidSpec'],
    ['UNSUPPORTED_OPERATION', 400, 'InvalidSpec'],
    ['RESOURCE_NOT_FOUND', 404, 'InvalidSpec'],
    ['SOMETHING_NEW', 400, 'InvalidSpec'],
    ['SOMETHING_NEW', 503, 'Transient'],
  ])('row 38: %s with status %i fails as %s', (code, status, behaviour) => {
    expect(resultOf(done(code, 'why', status))).toEqual({
      kind: 'failed',
      behaviour,
      code,
      message: 'why',
    });
  });

  test('row 38: a stock-out says which zones have capacity, in its text or in its details', () => {
    const message = 'No capacity in us-east1-b. Try a different zone, e.g. us-east1-c.';
    expect(resultOf(done('ZONE_RESOURCE_POOL_EXHAUSTED', message, 503))).toMatchObject({
      zones: ['us-east1-b', 'us-east1-c'],
    });
    const errorDetails = [{ errorInfo: { metadatas: { zonesAvailable: 'us-east1-c,us-east1-d' } } }];
    const errors = [{ code: 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS', message: 'None.', errorDetails }];
    expect(resultOf({ ...done('x'), error: { errors } })).toMatchObject({
      zones: ['us-east1-c', 'us-east1-d'],
    });
    expect(resultOf(done('QUOTA_EXCEEDED', message, 403))).not.toHaveProperty('zones');
  });

  test('row 39: the texts of all errors are shown, not the plain BAD REQUEST around them', () => {
    const errors = [
      { code: 'INVALID_USAGE', message: 'First.' },
      { code: 'INVALID_USAGE', message: 'Second.' },
    ];
    expect(resultOf({ ...done('x'), error: { errors } })).toMatchObject({
      code: 'INVALID_USAGE',
      message: 'First. Second.',
    });
  });

  test('row 39: a failure without errors inside is one, with what there is to say', () => {
    const bare = { ...done('x'), error: null };
    expect(resultOf(bare)).toMatchObject({ kind: 'failed', code: 'BAD REQUEST', message: 'BAD REQUEST' });
  });

  test('row 52: only DONE is an end', () => {
    expect(resultOf({ status: 'RUNNING' })).toEqual({ kind: 'running' });
    expect(resultOf({ status: 'PENDING', httpErrorStatusCode: 400 })).toEqual({ kind: 'running' });
    expect(resultOf({ status: 'DONE', error: { errors: [] } })).toEqual({ kind: 'succeeded' });
  });

  test('row 44: a delete that finds nothing has succeeded', () => {
    expect(resultOf({ ...done('RESOURCE_NOT_FOUND'), operationType: 'delete' })).toEqual({
      kind: 'succeeded',
    });
  });

  test('a machine that was deleted while it was made says nothing against its specification', () => {
    expect(resultOf(done('RESOURCE_NOT_FOUND', INSTANCE, 404))).toMatchObject({ behaviour: 'Transient' });
  });
});
