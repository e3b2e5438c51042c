import { RepriseError } from "./errors.ts";

/** A misspelt option would be ignored in silence, and found in production. */
export function checkOptionNames(options: object, known: readonly string[], what: string): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: there is no option ${JSON.stringify(unknown)}; expected ${known.join(", ")}.`,
  );
}
