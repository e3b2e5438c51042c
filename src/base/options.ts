import { RepriseError } from "./errors.ts";

/** Refuses unknown options: the engine would ignore a misspelled one silently. */
export function checkOptionNames(options: object, known: readonly string[], what: string): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const got = options === null ? "null" : Array.isArray(options) ? "an array" : typeof options;
    throw new RepriseError("BAD_OPTIONS", `${what}: expected an object of options, got ${got}.`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: there is no option ${JSON.stringify(unknown)}; ${known.length === 0 ? "it takes no options" : `expected ${known.join(", ")}`}.`,
  );
}
