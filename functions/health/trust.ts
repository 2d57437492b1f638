/** Whom probes trust: the usual authorities, and those of one file. */

import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

import { SystemError } from '#shared/app/errors.ts';

/** Throws `NotConfigured` when the file cannot be read or holds no certificate. */
export const loadTrust = (caFile?: string): SecureContext => {
  if (caFile === undefined) return createSecureContext();
  try {
    const pem = readFileSync(caFile, 'utf8');
    if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new TypeError('there is no certificate in it');
    return createSecureContext({ ca: [...getCACertificates('default'), pem] });
  } catch (cause) {
    throw new SystemError('NotConfigured', `PROBE_CA_FILE: ${caFile} is not usable`, { cause });
  }
};
