/** gRPC on the wire, as far as counting needs it: messages in a stream of bytes, and which fields a message has. */

const HEADER_BYTES = 5;

/** Cuts a stream of bytes into its messages; `seen` gets each, without its header. */
export const makeFrames = (seen: (message: Uint8Array) => void): ((chunk: Uint8Array) => void) => {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + rest.readUInt32BE(1);
      if (rest.length < end) return;
      seen(rest.subarray(HEADER_BYTES, end));
      rest = rest.subarray(end);
    }
  };
};

interface Cursor {
  at: number;
}

const varint = (bytes: Uint8Array, cursor: Cursor): number => {
  let value = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[cursor.at] ?? 0;
    cursor.at += 1;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
};

const FIXED: Readonly<Record<number, number>> = { 1: 8, 5: 4 };
const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** The top-level fields of a protobuf message, in their order; what is not length-delimited comes without its content. */
export const fieldsOf = (
  message: Uint8Array,
): readonly { readonly number: number; readonly content: Uint8Array }[] => {
  const cursor: Cursor = { at: 0 };
  const fields: { number: number; content: Uint8Array }[] = [];
  while (cursor.at < message.length) {
    const tag = varint(message, cursor);
    const type = tag & 7;
    let content = new Uint8Array();
    if (type === VARINT) varint(message, cursor);
    else if (type === LENGTH_DELIMITED) {
      const length = varint(message, cursor);
      content = Uint8Array.from(message.subarray(cursor.at, cursor.at + length));
      cursor.at += length;
    } else cursor.at += FIXED[type] ?? message.length;
    fields.push({ number: Math.floor(tag / 8), content });
  }
  return fields;
};
