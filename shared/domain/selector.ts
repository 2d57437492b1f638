/** Label selectors in the syntax of Kubernetes: `a=b, c!=d, e in (f,g), h notin (i), j, !k, l>1, m<2`. */

export type Requirement =
  | { readonly operator: 'in' | 'notin'; readonly key: string; readonly values: readonly string[] }
  | { readonly operator: 'exists' | 'absent'; readonly key: string }
  | { readonly operator: 'gt' | 'lt'; readonly key: string; readonly bound: number };

/** Every requirement must hold; none = everything matches. */
export type Selector = readonly Requirement[];

/** `position` counts characters from 1. */
export interface SelectorError {
  readonly position: number;
  readonly message: string;
}

export type ParsedSelector =
  | { readonly kind: 'selector'; readonly selector: Selector }
  | { readonly kind: 'error'; readonly error: SelectorError };

interface Token {
  readonly text: string;
  readonly position: number;
}

const TOKENS = /\s+|(?<token>!=|==|[=!,()<>]|[^\s=!,()<>]+)/gy;
const SYMBOL = /^[=!,()<>]/;
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const INTEGER = /^-?\d{1,15}$/;

const isLabelKey = (text: string): boolean => {
  const [first = '', second, ...rest] = text.split('/');
  if (second === undefined) return NAME.test(first);
  return rest.length === 0 && first.length <= 253 && PREFIX.test(first) && NAME.test(second);
};

const isLabelValue = (text: string): boolean => text === '' || NAME.test(text);

const tokensOf = (text: string): readonly Token[] =>
  [...text.matchAll(TOKENS)].flatMap(({ groups, index }) =>
    groups?.['token'] === undefined ? [] : [{ text: groups['token'], position: index + 1 }],
  );

/** Thrown and caught inside this module only. */
class Unparsable extends Error {
  readonly position: number;
  constructor({ position }: Token, message: string) {
    super(message);
    this.position = position;
  }
}

const quote = ({ text }: Token): string => (text === '' ? 'the end' : `"${text}"`);

/** A cursor over the tokens; behind the last one stands an empty token. */
const cursor = (text: string) => {
  const tokens = tokensOf(text);
  const end: Token = { text: '', position: text.length + 1 };
  let at = 0;
  const peek = (): Token => tokens[at] ?? end;
  const next = (): Token => {
    const token = peek();
    at += 1;
    return token;
  };
  const expect = (wanted: string): void => {
    const token = next();
    if (token.text !== wanted) throw new Unparsable(token, `expected "${wanted}", found ${quote(token)}`);
  };
  return { peek, next, expect };
};
type Cursor = ReturnType<typeof cursor>;

const isWord = ({ text }: Token): boolean => text !== '' && !SYMBOL.test(text);

const parseKey = (tokens: Cursor): string => {
  const token = tokens.next();
  if (!isWord(token)) throw new Unparsable(token, `expected a label key, found ${quote(token)}`);
  if (!isLabelKey(token.text)) throw new Unparsable(token, `"${token.text}" is not a label key`);
  return token.text;
};

/** A value may be empty, so that `a=` and `a in ()` can be said. */
const parseValue = (tokens: Cursor): string => {
  const token = tokens.peek();
  if (!isWord(token)) return '';
  if (!isLabelValue(token.text)) throw new Unparsable(token, `"${token.text}" is not a label value`);
  return tokens.next().text;
};

const parseValues = (tokens: Cursor): readonly string[] => {
  tokens.expect('(');
  const values = [parseValue(tokens)];
  while (tokens.peek().text === ',') {
    tokens.next();
    values.push(parseValue(tokens));
  }
  tokens.expect(')');
  return [...new Set(values)];
};

const parseBound = (tokens: Cursor): number => {
  const token = tokens.next();
  if (!INTEGER.test(token.text)) throw new Unparsable(token, `expected an integer, found ${quote(token)}`);
  return Number(token.text);
};

const parseComparison = (key: string, tokens: Cursor): Requirement => {
  const operator = tokens.next();
  const { text } = operator;
  if (text === '=' || text === '==') return { operator: 'in', key, values: [parseValue(tokens)] };
  if (text === '!=') return { operator: 'notin', key, values: [parseValue(tokens)] };
  if (text === 'in' || text === 'notin') return { operator: text, key, values: parseValues(tokens) };
  if (text === '>') return { operator: 'gt', key, bound: parseBound(tokens) };
  if (text === '<') return { operator: 'lt', key, bound: parseBound(tokens) };
  const wanted = '"=", "!=", "in", "notin", ">", "<" or ","';
  throw new Unparsable(operator, `expected ${wanted}, found ${quote(operator)}`);
};

const parseRequirement = (tokens: Cursor): Requirement => {
  if (tokens.peek().text === '!') {
    tokens.next();
    return { operator: 'absent', key: parseKey(tokens) };
  }
  const key = parseKey(tokens);
  return ['', ','].includes(tokens.peek().text) ? { operator: 'exists', key } : parseComparison(key, tokens);
};

const parseAll = (tokens: Cursor): Selector => {
  const requirements: Requirement[] = [];
  if (tokens.peek().text === '') return requirements;
  for (;;) {
    requirements.push(parseRequirement(tokens));
    const token = tokens.next();
    if (token.text === '') return requirements;
    if (token.text !== ',') throw new Unparsable(token, `expected ",", found ${quote(token)}`);
  }
};

/** Parses a selector; an empty one selects everything. */
export const parseSelector = (text: string): ParsedSelector => {
  try {
    return { kind: 'selector', selector: parseAll(cursor(text)) };
  } catch (error) {
    if (!(error instanceof Unparsable)) throw error;
    return { kind: 'error', error: { position: error.position, message: error.message } };
  }
};

const holds = (requirement: Requirement, labels: Readonly<Record<string, string>>): boolean => {
  const { operator, key } = requirement;
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  if (operator === 'absent') return value === undefined;
  if (operator === 'exists') return value !== undefined;
  if ('values' in requirement) {
    const listed = value !== undefined && requirement.values.includes(value);
    return (operator === 'in') === listed;
  }
  if (!('bound' in requirement) || value === undefined || !INTEGER.test(value)) return false;
  return operator === 'gt' ? Number(value) > requirement.bound : Number(value) < requirement.bound;
};

/** As the API server judges: `!=` and `notin` hold as well where the label is absent. */
export const matches = (selector: Selector, labels: Readonly<Record<string, string>>): boolean =>
  selector.every((requirement) => holds(requirement, labels));
