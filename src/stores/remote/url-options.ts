// URL options: checks the options of a store URL.

import { RepriseError } from "../../base/index.ts";

/** Unknown options are refused, because they would have no effect. */
export function refuseUnknownOptions(driver: string, options: URLSearchParams, known: readonly string[]): void {
  for (const name of new Set(options.keys())) {
    if (!known.includes(name))
      throw new RepriseError(
        "BAD_STORE_URL",
        `${driver}: the URL has an unknown option ${JSON.stringify(name)}. Remove it, or use one of: ${known.join(", ")}.`,
        { details: { option: name, known } },
      );
    if (options.getAll(name).length > 1)
      throw new RepriseError(
        "BAD_STORE_URL",
        `${driver}: the URL has the option ${name} more than once. Remove all but one.`,
        {
          details: { option: name },
        },
      );
  }
}

/** The value of an option with a fixed list of values; undefined when the URL does not have it. */
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
    `${driver}: the URL has ?${name}=${value}. Use ${values.map((each) => `?${name}=${each}`).join(" or ")}.`,
    { details: { option: name, value, known: values } },
  );
}

/** `connect_timeout` in whole seconds, as in libpq; undefined when the URL does not have it. */
export function connectMsOf(driver: string, options: URLSearchParams): number | undefined {
  const value = options.get("connect_timeout");
  if (value === null) return undefined;
  if (/^[1-9]\d{0,3}$/.test(value)) return Number(value) * 1_000;
  throw new RepriseError(
    "BAD_STORE_URL",
    `${driver}: the URL has ?connect_timeout=${value}. Use whole seconds from 1 to 9999, such as ?connect_timeout=5.`,
    { details: { option: "connect_timeout", value } },
  );
}

/** With several hosts, a connection attempt gives up earlier and tries the next host. */
const CONNECT_MS_OF_SEVERAL = 2_000;

/** The connect timeout of one host. */
export function connectMsWith(given: number | undefined, usual: number, areSeveral: boolean): number {
  return given ?? (areSeveral ? Math.min(usual, CONNECT_MS_OF_SEVERAL) : usual);
}
