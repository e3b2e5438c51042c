// Options of a store's URL: the known ones, once each, with a value that is one of theirs.

import { RepriseError } from "../../base/index.ts";

/** An unknown option would have no effect, so it is refused. */
export function refuseUnknownOptions(driver: string, options: URLSearchParams, known: readonly string[]): void {
  for (const name of new Set(options.keys())) {
    if (!known.includes(name))
      throw new RepriseError(
        "BAD_STORE_URL",
        `${driver}: the URL has an unknown option ${JSON.stringify(name)}. Known options: ${known.join(", ")}. Remove it, or correct its name.`,
        { details: { option: name, known } },
      );
    if (options.getAll(name).length > 1)
      throw new RepriseError("BAD_STORE_URL", `${driver}: the URL has the option ${name} twice. Remove one of them.`, {
        details: { option: name },
      });
  }
}

/** The value of an option that has a list of them; undefined when it is not there. */
export function oneOf<T extends string>(
  driver: string,
  options: URLSearchParams,
  name: string,
  values: readonly T[],
): T | undefined {
  const value = options.get(name);
  if (value === null) return undefined;
  const found = values.find((each) => each === value);
  if (found !== undefined) return found;
  throw new RepriseError(
    "BAD_STORE_URL",
    `${driver}: expected ?${name}=${values.join(" or ")}, got ?${name}=${value}.`,
    { details: { option: name, value, known: values } },
  );
}

/** `connect_timeout`, in whole seconds as everywhere; undefined when it is not there. */
export function connectMsOf(driver: string, options: URLSearchParams): number | undefined {
  const value = options.get("connect_timeout");
  if (value === null) return undefined;
  if (/^[1-9]\d{0,3}$/.test(value)) return Number(value) * 1_000;
  throw new RepriseError(
    "BAD_STORE_URL",
    `${driver}: expected ?connect_timeout= in whole seconds, at least 1, got ?connect_timeout=${value}.`,
    { details: { option: "connect_timeout", value } },
  );
}

/** With several hosts one that does not answer is left for the next soon. */
const CONNECT_MS_OF_SEVERAL = 2_000;

/** How long one host may take to answer. */
export function connectMsWith(asked: number | undefined, usual: number, areSeveral: boolean): number {
  return asked ?? (areSeveral ? Math.min(usual, CONNECT_MS_OF_SEVERAL) : usual);
}
