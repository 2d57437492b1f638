/** A certificate authority of a run's own, for TLS on loopback. Its key never leaves the process. */

import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';

export interface Issued {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface IssueOptions {
  /** Default: a day from now. */
  readonly notAfter?: Date;
}

export interface Authority {
  readonly caPem: string;
  /** A server certificate for names and addresses (IPv6 without brackets). */
  issue(hosts: string | readonly string[], options?: IssueOptions): Promise<Issued>;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const KEYS = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;

/** The library looks for the polyfill while it loads. */
const loadX509 = async () => {
  await import('reflect-metadata/lite');
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto);
  return x509;
};

const makeKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);

const keyPem = async (key: webcrypto.CryptoKey): Promise<string> => {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64');
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`;
};

/** A new authority, whose certificates are valid for a day, and from an hour ago. */
export const makeAuthority = async (name = 'Local test authority'): Promise<Authority> => {
  const x509 = await loadX509();
  const keys = await makeKeys();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    notBefore: new Date(Date.now() - HOUR),
    notAfter: new Date(Date.now() + DAY),
    signingAlgorithm: SIGNING,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  });

  const issue = async (hosts: string | readonly string[], options: IssueOptions = {}): Promise<Issued> => {
    const names = typeof hosts === 'string' ? [hosts] : hosts;
    const own = await makeKeys();
    const certificate = await x509.X509CertificateGenerator.create({
      subject: `CN=${names[0]?.replaceAll(':', '-') ?? 'none'}`,
      issuer: ca.subject,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      notBefore: new Date(Date.now() - HOUR),
      notAfter: options.notAfter ?? new Date(Date.now() + DAY),
      signingAlgorithm: SIGNING,
      extensions: [
        new x509.BasicConstraintsExtension(false),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value }) as const),
        ),
      ],
    });
    return { certPem: certificate.toString('pem'), keyPem: await keyPem(own.privateKey) };
  };

  return { caPem: ca.toString('pem'), issue };
};
