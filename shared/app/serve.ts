/** How a function is registered: one way for all, so that none answers what the framework refuses with the framework's pages. */

import { http } from '@google-cloud/functions-framework';

import { answerFrameworkErrors } from './framework-errors.ts';
import { toFramework, type HttpHandler } from './http.ts';
import { systemIds } from './ids.ts';
import type { Log } from './log.ts';

/** Registers `handler` under the name that the platform is told to serve. */
export const serve = (name: string, handler: HttpHandler, log: Log): void => {
  answerFrameworkErrors(log, systemIds);
  http(name, toFramework(handler, log));
};
