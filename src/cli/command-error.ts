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

/** Does the work. An error of one of the codes gets the command that helps here, in place of the catalogue's general advice. */
export async function suggest<T>(next: Partial<Record<ErrorCode, string>>, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const command = error instanceof RepriseError ? next[error.code] : undefined;
    if (command === undefined || !(error instanceof RepriseError) || error instanceof CommandError) throw error;
    throw new CommandError(error.code, error.message, command, {
      cause: error,
      ...(error.details && { details: error.details }),
    });
  }
}

/** Fills the ids and codes that are known, and the store, into the advice of the error catalogue. */
export function nextFor(advice: string, run: string | undefined, code: string): string {
  const filled = advice.replaceAll("<details.code>", code);
  return withStoreOption(run === undefined ? filled : filled.replaceAll("<id>", shellWord(run)));
}
