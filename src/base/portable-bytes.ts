// Bytes and text without the modules of Node: `Buffer` where there is one, because it is faster, else what every browser has.

interface NodeBuffer {
  readonly prototype: object;
  from(bytes: ArrayBufferLike, offset: number, length: number): { toString(encoding: "base64"): string };
  from(text: string, encoding: "base64"): Uint8Array;
  byteLength(text: string): number;
}

const { Buffer: NodeBuffer } = globalThis as { readonly Buffer?: NodeBuffer };

/** The prototype of the bytes of Node; undefined in browsers. */
export const BUFFER_PROTOTYPE: object | undefined = NodeBuffer?.prototype;

/** The number of UTF-8 bytes of a text. */
export function utf8Length(text: string): number {
  return NodeBuffer === undefined ? new TextEncoder().encode(text).length : NodeBuffer.byteLength(text);
}

export function toBase64(bytes: Uint8Array): string {
  if (NodeBuffer !== undefined)
    return NodeBuffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  // In portions: a function takes a bounded number of arguments.
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8_192) binary += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(binary);
}

/** Undefined: the text is not canonical base64. */
export function fromBase64(text: string): Uint8Array | undefined {
  const bytes = NodeBuffer === undefined ? decodeInBrowser(text) : new Uint8Array(NodeBuffer.from(text, "base64"));
  // Decoders skip characters that are not of the alphabet.
  return bytes !== undefined && toBase64(bytes) === text ? bytes : undefined;
}

function decodeInBrowser(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
