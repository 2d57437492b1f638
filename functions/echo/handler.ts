import { SystemError } from '#shared/app/errors.ts';
import { problem, type HttpHandler } from '#shared/app/http.ts';

import { callerAddress, isNonce } from './decide.ts';

const NEVER_STORED = { 'cache-control': 'no-store' };

/** `GET ?nonce=` answers `{nonce, address}`; needs no rights and no configuration. */
export const makeHandler = (): HttpHandler => async (request) => {
  if (request.method !== 'GET')
    return problem(405, 'MethodNotAllowed', 'Only GET is answered.', {}, { allow: 'GET', ...NEVER_STORED });
  if (request.path === '/health') return { status: 200, headers: NEVER_STORED, body: { status: 'ok' } };
  const nonce = request.query.get('nonce');
  if (!isNonce(nonce))
    return problem(
      400,
      'InvalidRequest',
      'nonce must be 1 to 128 letters, digits, hyphens or underscores.',
      { field: 'nonce' },
      NEVER_STORED,
    );
  const address = callerAddress(request.headers['x-forwarded-for'], request.peer);
  if (address === undefined) throw new SystemError('Transient', 'The connection shows no peer address.');
  return { status: 200, headers: NEVER_STORED, body: { nonce, address } };
};
