// Plain JSON: a payload as programs without Reprise expect it. What JSON lacks has the usual form: a date is ISO 8601, a bigint and bytes
// (base64) are text, a set is a list, a map is a list of pairs, `undefined` is null, an error is name, message and code.

/** The value as plain JSON. It cannot be turned back: the codec keeps types, this form does not. */
export function plainJson(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "function" || typeof value === "symbol" || value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof Map) return [...value].map(([key, one]) => [plainJson(key), plainJson(one)]);
  if (value instanceof Set) return [...value].map(plainJson);
  if (value instanceof Error) return plainError(value);
  if (Array.isArray(value)) return value.map(plainJson);
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries.map(([name, one]) => [name, plainJson(one)]));
}

function plainError(error: Error & { readonly code?: unknown }): object {
  const { name, message, code } = error;
  return { name, message, ...(typeof code === "string" && { code }) };
}
