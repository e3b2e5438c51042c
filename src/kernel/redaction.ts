// Redaction: removes secrets from what the engine shows to people: log lines, and what errors say about payloads.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError, redactData, redactText, secretKeys, type Needles } from "../base/index.ts";
import { secretNeedles, type SecretValues } from "./secrets.ts";
import type { Logger } from "./task.ts";

/** Additional secrets. */
export interface RedactOptions {
  /** Additional keys whose values are secrets. Text is compared without case, `_` and `-`. */
  keys?: readonly (string | RegExp)[];
  /** The secrets, such as an API key from the environment. Called for every redaction. */
  values?: SecretValues;
}

export class Redaction {
  readonly values: SecretValues | undefined;
  readonly #isSecret: ((key: string) => boolean) | undefined;

  constructor(options: false | RedactOptions = {}) {
    this.values = options === false ? undefined : options.values;
    this.#isSecret = options === false ? undefined : secretKeys(options.keys);
  }

  get #needles(): Needles {
    return this.#isSecret === undefined ? [] : secretNeedles();
  }

  text(text: string): string {
    return redactText(text, this.#needles);
  }

  data<T>(value: T): T {
    if (this.#isSecret === undefined) return value;
    return redactData(value, { needles: this.#needles, isSecret: this.#isSecret }) as T;
  }

  /** Redacts the details of an error by key and value, its message and its cause by value only. */
  error(error: RepriseError): RepriseError {
    const needles = this.#needles;
    const details = this.data(error.details);
    const clean = needles.length === 0 ? error : (redactData(error, { needles }) as RepriseError);
    if (details === error.details) return clean;
    const options = { ...("cause" in clean && { cause: clean.cause }), ...(details && { details }) };
    return Object.assign(new RepriseError(clean.code, clean.message, options), { stack: clean.stack });
  }

  logger(logger: Logger): Required<Logger> {
    const clean = this.#isSecret !== undefined;
    const text = (message: string): string => (clean ? this.text(message) : message);
    return {
      debug: (message, data) => logger.debug?.(text(message), this.data(data)),
      info: (message, data) => logger.info(text(message), this.data(data)),
      warn: (message, data) => logger.warn(text(message), this.data(data)),
      error: (message, data) => logger.error(text(message), this.data(data)),
    };
  }
}

export function checkRedact(redact: unknown): Redaction {
  if (redact === undefined || redact === false) return new Redaction(redact);
  if (typeof redact !== "object" || redact === null)
    throw new RepriseError("BAD_OPTIONS", `redact: expected false or { keys, values }, got ${inspect(redact)}.`);
  checkOptionNames(redact, ["keys", "values"], "redact");
  const { keys = [], values } = redact as { keys?: unknown; values?: unknown };
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === "string" || key instanceof RegExp))
    throw new RepriseError("BAD_OPTIONS", "redact.keys: expected an array of names and regular expressions.");
  if (values !== undefined) checkValues(values);
  return new Redaction(redact as RedactOptions);
}

/** The messages never contain the values. */
function checkValues(values: unknown): void {
  let given: unknown;
  try {
    given = typeof values === "function" ? (values as () => unknown)() : undefined;
  } catch (cause) {
    throw new RepriseError("BAD_OPTIONS", "redact.values: the function failed.", { cause });
  }
  if (!Array.isArray(given) || !given.every((value) => typeof value === "string"))
    throw new RepriseError(
      "BAD_OPTIONS",
      'redact.values: expected a function that returns an array of strings, such as () => [process.env["API_KEY"] ?? ""].',
    );
}
