/** From a request to the call that answers it. */

import type { Resource, World } from './world.ts';

export interface ApiRequest {
  readonly method: string;
  /** With the name of the API first: `run/v2/projects/p`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly raw: Buffer;
  /** The body as JSON; empty when there is none. */
  readonly body: Resource;
  /** The parts of the path that the route names. */
  readonly at: (name: string) => string;
}

export type Answer = (world: World, request: ApiRequest) => Resource | Promise<Resource>;

export interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  readonly answer: Answer;
}

/** `{name}` stands for one segment, `{name+}` for the rest of the path or for what is before a `:verb`. */
const patternOf = (template: string): RegExp => {
  const source = template
    .replaceAll('.', '\\.')
    .replaceAll(/\{(\w+)\+\}/g, '(?<$1>[^:]+)')
    .replaceAll(/\{(\w+)\}/g, '(?<$1>[^/:]+)');
  return new RegExp(`^${source}$`);
};

/** A route from `'GET run/v2/projects/{project}'`. */
export const route = (on: string, answer: Answer): Route => {
  const [method = '', template = ''] = on.split(' ');
  return { method, pattern: patternOf(template), answer };
};

export interface Match {
  readonly answer: Answer;
  readonly at: (name: string) => string;
}

export const findRoute = (routes: readonly Route[], method: string, path: string): Match | undefined => {
  for (const { method: wanted, pattern, answer } of routes) {
    const found = wanted === method ? pattern.exec(path) : null;
    if (found) return { answer, at: (name) => decodeURIComponent(found.groups?.[name] ?? '') };
  }
  return undefined;
};
