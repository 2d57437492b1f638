/** Logs: one JSON object per line on standard output, in the form that Cloud Logging reads. */

import { errorChain } from './errors.ts';

export type Severity = 'DEBUG' | 'INFO' | 'WARNING' | 'ERROR';
export type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warning(message: string, fields?: Fields): void;
  /** `error` is written with its chain of causes; its stack goes where Error Reporting finds it. */
  error(message: string, error: unknown, fields?: Fields): void;
  with(fields: Fields): Log;
}

const errorFields = (error: unknown): Fields => ({
  error: errorChain(error),
  ...(error instanceof Error && error.stack ? { stack_trace: error.stack } : {}),
});

const nothing = (): Fields => ({});

/** A log whose lines go to `write`, each with the fields of all its parents, and those of whatever `context` it is written in. */
export const makeLog = (
  write: (line: string) => void,
  fields: Fields = {},
  context: () => Fields = nothing,
): Log => {
  const emit = (severity: Severity, message: string, more: Fields = {}): void =>
    write(`${JSON.stringify({ severity, message, ...context(), ...fields, ...more })}\n`);
  return {
    debug: (message, more) => emit('DEBUG', message, more),
    info: (message, more) => emit('INFO', message, more),
    warning: (message, more) => emit('WARNING', message, more),
    error: (message, error, more) => emit('ERROR', message, { ...errorFields(error), ...more }),
    with: (more) => makeLog(write, { ...fields, ...more }, context),
  };
};
