/**
 * List filters as the Compute Engine API takes them: `field = "literal"` joined by AND, OR and parentheses, NOT in front,
 * `=`, `!=`, `>`, `<`, `>=`, `<=`, `:` as operators, or the older `field eq regular-expression`. The two kinds do not mix, and a literal with
 * other characters than letters, digits, `_`, `-`, `.`, `/` and `*` needs quotes.
 */

import { ApiError } from './errors.ts';

type Resource = Readonly<Record<string, unknown>>;
type Predicate = (resource: Resource) => boolean;

const TOKEN = /\s*(?:(?<punctuation>[()]|!=|>=|<=|[=<>:])|"(?<quoted>(?:[^"\\]|\\.)*)"|(?<word>[\w./*-]+))/uy;

interface Token {
  readonly kind: 'punctuation' | 'quoted' | 'word';
  readonly text: string;
}

const bad = (filter: string): ApiError =>
  new ApiError(
    400,
    'invalid',
    `Invalid value for field 'filter': '${filter}'. Invalid list filter expression.`,
  );

const tokenize = (filter: string): readonly Token[] => {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  const end = filter.trimEnd().length;
  while (TOKEN.lastIndex < end) {
    const groups = TOKEN.exec(filter)?.groups;
    if (!groups) throw bad(filter);
    const { punctuation, quoted, word } = groups;
    if (punctuation !== undefined) tokens.push({ kind: 'punctuation', text: punctuation });
    else if (quoted === undefined) tokens.push({ kind: 'word', text: word ?? '' });
    else tokens.push({ kind: 'quoted', text: quoted.replaceAll(/\\(.)/gu, '$1') });
  }
  return tokens;
};

const isObject = (value: unknown): value is Resource =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const valueAt = (resource: Resource, field: string): string | undefined => {
  let current: unknown = resource;
  const [head = '', ...rest] = field.split('.');
  for (const key of [head, ...rest]) current = isObject(current) ? current[key] : undefined;
  return typeof current === 'string' || typeof current === 'number' || typeof current === 'boolean'
    ? String(current)
    : undefined;
};

type Compare = (value: string | undefined, literal: string) => boolean;

const contains: Compare = (value, literal) =>
  value !== undefined && (literal === '*' || value.toLowerCase().includes(literal.toLowerCase()));

const OPERATORS: Readonly<Record<string, Compare>> = {
  '=': (value, literal) => value === literal,
  '!=': (value, literal) => value !== literal,
  '>': (value, literal) => value !== undefined && value > literal,
  '<': (value, literal) => value !== undefined && value < literal,
  '>=': (value, literal) => value !== undefined && value >= literal,
  '<=': (value, literal) => value !== undefined && value <= literal,
  ':': contains,
  eq: (value, literal) => value !== undefined && new RegExp(`^(?:${literal})$`, 'u').test(value),
  ne: (value, literal) => value === undefined || !new RegExp(`^(?:${literal})$`, 'u').test(value),
};
const REGEX_OPERATORS = new Set(['eq', 'ne']);

/** A filter as a predicate on rendered resources. Throws the API's 400 for one that it would not take. */
export const parseFilter = (filter: string): Predicate => {
  const tokens = tokenize(filter);
  let position = 0;
  const kinds = new Set<'regex' | 'literal'>();
  const peek = (): Token | undefined => tokens[position];
  const take = (): Token => {
    const token = tokens[position];
    if (!token) throw bad(filter);
    position += 1;
    return token;
  };
  const isWord = (text: string): boolean => peek()?.kind === 'word' && peek()?.text === text;
  const isPunctuation = (text: string): boolean => peek()?.kind === 'punctuation' && peek()?.text === text;

  const comparison = (): Predicate => {
    const field = take();
    const operator = take();
    const literal = take();
    const compare = operator.kind === 'quoted' ? undefined : OPERATORS[operator.text];
    if (field.kind !== 'word' || !compare || literal.kind === 'punctuation') throw bad(filter);
    kinds.add(REGEX_OPERATORS.has(operator.text) ? 'regex' : 'literal');
    if (kinds.size > 1) throw bad(filter);
    return (resource) => compare(valueAt(resource, field.text), literal.text);
  };
  const term = (): Predicate => {
    if (isWord('NOT')) {
      take();
      const inner = term();
      return (resource) => !inner(resource);
    }
    if (!isPunctuation('(')) return comparison();
    take();
    const inner = expression();
    if (!isPunctuation(')')) throw bad(filter);
    take();
    return inner;
  };
  const conjunction = (): Predicate => {
    const parts = [term()];
    while (peek() && !isPunctuation(')') && !isWord('OR')) {
      if (isWord('AND')) take();
      parts.push(term());
    }
    return (resource) => parts.every((part) => part(resource));
  };
  const expression = (): Predicate => {
    const parts = [conjunction()];
    while (isWord('OR')) {
      take();
      parts.push(conjunction());
    }
    return (resource) => parts.some((part) => part(resource));
  };

  if (tokens.length === 0) return () => true;
  const predicate = expression();
  if (position < tokens.length) throw bad(filter);
  return predicate;
};
