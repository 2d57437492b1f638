/** Variables and outputs of the module, as far as tables tell of them; the files are in the form of `terraform fmt`. */

export interface Block {
  readonly name: string;
  readonly description: string;
  /** One line each: `name` (type or default). Of an object its attributes, else the type itself; outputs have none. */
  readonly attributes: readonly string[];
  readonly required: boolean;
}

const BLOCK = /^(?:variable|output) "(\w+)" \{\n([^]*?)^\}/gm;
const DESCRIPTION = /^ {2}description = "((?:[^"\\]|\\.)*)"$/m;
const SIMPLE_TYPE = /^ {2}type {8}= ((?:list|set|map)\(\w+\)|string|number|bool)$/m;
const ATTRIBUTE = /^ {4}(\w+) *= (?:optional\(([a-z]+(?:\([a-z]+\))?)(?:, (.+))?\)|([a-z()]+))$/gm;
const DEFAULT = /^ {2}default +=/m;

const attributeLine = (name: string, given: string | undefined, type: string | undefined): string => {
  if (type !== undefined) return `\`${name}\``;
  return given === undefined ? `\`${name}\` (optional)` : `\`${name}\` (${given})`;
};

/** Throws for a block without a description. */
export const parseBlocks = (text: string): readonly Block[] =>
  [...text.matchAll(BLOCK)].map(([, name = '', body = '']) => {
    const description = DESCRIPTION.exec(body)?.[1];
    if (description === undefined) throw new Error(`${name} has no description`);
    const simple = SIMPLE_TYPE.exec(body)?.[1];
    const attributes = [...body.matchAll(ATTRIBUTE)].map(([, attribute = '', , given, type]) =>
      attributeLine(attribute, given, type),
    );
    return {
      name,
      description: description.replaceAll('\\"', '"'),
      attributes: simple === undefined ? attributes : [simple],
      required: !DEFAULT.test(body),
    };
  });
