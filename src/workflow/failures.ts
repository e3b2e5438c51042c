// Failures: which command failed with an error that the code was given, so that a retry knows where to go on (V1).

const MAX_CAUSES = 10;

/** Where a failure came from: a command, a port or the deadline; and how many commands there were when it came. */
export interface FailedAt {
  readonly at: string;
  readonly commands: number;
}

export class Failures {
  readonly #byError = new WeakMap<object, FailedAt>();

  note(error: unknown, failedAt: FailedAt): void {
    if (typeof error === "object" && error !== null) this.#byError.set(error, failedAt);
  }

  /** By the error itself, or by one it carries. Anything can be thrown, also what must not be looked at. */
  find(error: unknown): FailedAt | undefined {
    try {
      return this.#find(error, 0);
    } catch {
      return undefined;
    }
  }

  #find(error: unknown, depth: number): FailedAt | undefined {
    if (typeof error !== "object" || error === null || depth > MAX_CAUSES) return undefined;
    const found = this.#byError.get(error);
    if (found !== undefined) return found;
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    return this.#find(cause, depth + 1) ?? (Array.isArray(errors) ? this.#find(errors[0], depth + 1) : undefined);
  }
}
