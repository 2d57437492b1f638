/** Paths and methods of the API. What does not match is answered here, so that calls see only what is theirs. */

import { problem, type HttpReply, type HttpRequest } from '#shared/app/http.ts';

export type Method = 'GET' | 'POST' | 'DELETE';

/** `id` is the decoded path parameter, '' where the path has none. */
export type Call = (request: HttpRequest, id: string) => Promise<HttpReply> | HttpReply;

/** Paths as in the OpenAPI document; `{id}` stands for one segment. */
export type Routes = Readonly<Record<string, Readonly<Partial<Record<Method, Call>>>>>;

const PARAMETER = '{id}';

interface Match {
  readonly methods: Readonly<Partial<Record<Method, Call>>>;
  readonly id: string;
}

const decoded = (segment: string): string | undefined => {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
};

const parameterOf = (pattern: readonly string[], path: readonly string[]): string | undefined => {
  if (pattern.length !== path.length) return undefined;
  let id: string | undefined = '';
  for (const [index, expected] of pattern.entries()) {
    const segment = path[index] ?? '';
    if (expected === PARAMETER) id = segment === '' ? undefined : decoded(segment);
    else if (expected !== segment) return undefined;
  }
  return id;
};

const find = (routes: Routes, path: string): Match | undefined => {
  const segments = path.split('/');
  for (const [pattern, methods] of Object.entries(routes)) {
    const id = parameterOf(pattern.split('/'), segments);
    if (id !== undefined) return { methods, id };
  }
  return undefined;
};

const allowed = (methods: Match['methods']): string =>
  Object.keys(methods)
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ');

/** HEAD is GET: the server leaves the body out. */
const callOf = (methods: Match['methods'], method: string): Call | undefined => {
  if (method === 'GET' || method === 'HEAD') return methods.GET;
  if (method === 'POST') return methods.POST;
  if (method === 'DELETE') return methods.DELETE;
  return undefined;
};

export const makeRouter =
  (routes: Routes) =>
  async (request: HttpRequest): Promise<HttpReply> => {
    const match = find(routes, request.path);
    if (!match) return problem(404, 'NotFound', 'There is nothing at this path.');
    const call = callOf(match.methods, request.method);
    if (call) return call(request, match.id);
    const allow = allowed(match.methods);
    return problem(405, 'MethodNotAllowed', `This path takes ${allow}.`, {}, { allow });
  };
