// Plain data: values of an SDK in the form that a journal keeps. Bytes stay bytes.

/** A copy without functions and members that are `undefined`; URLs become their text. */
export function plainData(value: unknown): unknown {
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) return bytesOf(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (value instanceof URL) return value.href;
  if (value instanceof Date) return value;
  if (Array.isArray(value)) return value.map((item) => plainData(item) ?? null);
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const plain = plainData(item);
    if (plain !== undefined) copy[key] = plain;
  }
  return copy;
}

/** A `Buffer` is stored as what it is: bytes. */
function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
