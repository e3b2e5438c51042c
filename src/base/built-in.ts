// Which built-in a value is, whatever its prototype says, without the modules of Node: a method of the built-in throws on anything else.
// No code of the value runs (codec.C4).

function accepts(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch {
    return false;
  }
}

// A program may replace the methods later; these are called on values, and need no object of their own.
// oxlint-disable-next-line typescript/unbound-method
const [getTime, hasKey, hasItem] = [Date.prototype.getTime, Map.prototype.has, Set.prototype.has];
const typeName = Reflect.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
  Symbol.toStringTag,
)!.get!;

export function isDate(value: object): value is Date {
  return accepts(() => getTime.call(value as Date));
}

export function isMap(value: object): value is ReadonlyMap<unknown, unknown> {
  return accepts(() => hasKey.call(value as Map<unknown, unknown>, undefined));
}

export function isSet(value: object): value is ReadonlySet<unknown> {
  return accepts(() => hasItem.call(value as Set<unknown>, undefined));
}

export function isUint8Array(value: object): value is Uint8Array {
  return typeName.call(value) === "Uint8Array";
}

const { isError } = Error as { readonly isError?: (value: unknown) => boolean };

/** Also an error of another realm. */
export function isNativeError(value: object): value is Error {
  return value instanceof Error || isError?.(value) === true;
}
