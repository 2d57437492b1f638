/** Configuration: parsed once, from an argument; all problems in one message; frozen. */

import { z } from 'zod';

import { SystemError } from './errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Parses `env` with a schema whose keys are environment keys. Throws one `NotConfigured` error that names every problem.
 * An empty value counts as absent, since Terraform and dotenv files cannot tell the two apart.
 */
export const parseConfig = <S extends z.ZodObject>(schema: S, env: Environment): Readonly<z.output<S>> => {
  const given = Object.fromEntries(
    Object.keys(schema.shape).flatMap((key) =>
      env[key] === undefined || env[key] === '' ? [] : [[key, env[key]]],
    ),
  );
  const result = schema.safeParse(given);
  if (result.success) return Object.freeze(result.data);
  const problems = result.error.issues.map(
    ({ path, message }) => `  ${path.join('.')}: ${env[String(path[0])] ? message : 'is required'}`,
  );
  throw new SystemError('NotConfigured', `Configuration is not usable:\n${problems.join('\n')}`);
};

/** Values as environments spell them. */
export const fields = {
  text: z.string().min(1).max(2048),
  url: z.url(),
  seconds: (min: number, max: number) => z.coerce.number().int().min(min).max(max),
  count: (min: number, max: number) => z.coerce.number().int().min(min).max(max),
  flag: z.enum(['true', 'false']).transform((value) => value === 'true'),
  /** Comma-separated, at least one item. */
  list: z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean),
    )
    .pipe(z.array(z.string()).min(1)),
  installationId: z
    .string()
    .regex(/^[a-z][a-z0-9]{2,15}$/, 'must be 3 to 16 lower-case letters and digits, starting with a letter'),
  /** Namespaces of this installation: a list, or `*`. */
  namespaces: z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter(Boolean),
    )
    .pipe(
      z.union([
        z.tuple([z.literal('*')]),
        z.array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)).min(1),
      ]),
    ),
};
