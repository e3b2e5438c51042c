// Command error: an error of the command line that names the next command, in place of the catalogue's general advice.

import { RepriseError, type ErrorCode } from "../base/index.ts";
import { shellWord, withStoreOption } from "./next-command.ts";

export class CommandError extends RepriseError {
  /** A command line that the user can run. */
  readonly next: string;

  constructor(code: ErrorCode, message: string, next: string, options?: ConstructorParameters<typeof RepriseError>[2]) {
    super(code, message, options);
    this.next = withStoreOption(next);
  }
}

/** Fills the ids and codes that are known, and the store, into the advice of the error catalogue. */
export function nextFor(advice: string, run: string | undefined, code: string): string {
  const filled = advice.replaceAll("<details.code>", code);
  return withStoreOption(run === undefined ? filled : filled.replaceAll("<id>", shellWord(run)));
}
