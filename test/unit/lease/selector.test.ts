import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { matches, parseSelector, type Selector, type SelectorError } from '#shared/domain/selector.ts';

const LABELS = { pool: 'retail', region: 'eu', 'example.com/tier': '3', empty: '', in: 'x' };

const selectorOf = (text: string): Selector => {
  const parsed = parseSelector(text);
  if (parsed.kind === 'error') throw new Error(parsed.error.message);
  return parsed.selector;
};

const errorOf = (text: string): SelectorError => {
  const parsed = parseSelector(text);
  if (parsed.kind === 'selector') throw new Error(`${text} was accepted`);
  return parsed.error;
};

/** Where a selector is wrong; 1 when it is right, and then it can be matched. */
const positionIn = (text: string): number => {
  const parsed = parseSelector(text);
  if (parsed.kind === 'error') return parsed.error.position;
  matches(parsed.selector, LABELS);
  return 1;
};

const isWithin = (given: string): boolean => positionIn(given) >= 1 && positionIn(given) <= given.length + 1;

describe('a label selector', () => {
  it.each([
    ['', true],
    ['  ', true],
    ['pool=retail', true],
    ['pool == retail , region = eu', true],
    ['pool=other', false],
    ['pool!=other', true],
    ['pool!=retail', false],
    ['absent!=anything', true],
    ['pool in (retail, other)', true],
    ['pool in(other)', false],
    ['pool notin (other)', true],
    ['absent notin (other)', true],
    ['pool', true],
    ['absent', false],
    ['!absent', true],
    ['! pool', false],
    ['empty=', true],
    ['empty in ()', true],
    ['pool=', false],
    ['example.com/tier>2', true],
    ['example.com/tier < 3', false],
    ['pool>1', false],
    ['in=x', true],
    ['in in (x)', true],
    ['constructor', false],
    ['pool=retail,region in (us,eu),!absent', true],
  ])('%j matches: %s', (text, expected) => {
    expect(matches(selectorOf(text), LABELS)).toBe(expected);
  });

  it.each([
    [',', 1, 'a label key'],
    ['pool,', 6, 'a label key'],
    ['pool=retail region=eu', 13, '","'],
    ['pool in retail', 9, '"("'],
    ['pool in (a', 11, '")"'],
    ['pool ~ x', 6, '"="'],
    ['-bad=1', 1, 'not a label key'],
    ['a/b/c=1', 1, 'not a label key'],
    ['pool=-x', 6, 'not a label value'],
    [`pool=${'x'.repeat(64)}`, 6, 'not a label value'],
    ['n>x', 3, 'an integer'],
    ['!', 2, 'a label key'],
    ['a=b=c', 4, '","'],
    ['(', 1, 'a label key'],
  ])('%j is refused at character %i', (text, position, message) => {
    const found = errorOf(text);
    expect(found.position).toBe(position);
    expect(found.message).toContain(message);
  });

  it('never throws and never hangs, whatever it is given', () => {
    const characters = 'ab=!,()<> in/-.\t1é'.split('');
    const text = fc.string({ unit: fc.constantFrom(...characters), maxLength: 200 });
    expect(() => fc.assert(fc.property(text, isWithin))).not.toThrow();
  });
});
