// Failure origins: which command failed with the error that the code threw. A retry starts there (retry-record.V1).

const MAX_CAUSES = 10;

/** `at`: a command, a port or the deadline. `commands`: how many commands the code had requested by then. */
export interface FailureOrigin {
  readonly at: string;
  readonly commands: number;
}

export class FailureOrigins {
  readonly #byError = new WeakMap<object, FailureOrigin>();

  note(error: unknown, failedAt: FailureOrigin): void {
    if (typeof error === "object" && error !== null) this.#byError.set(error, failedAt);
  }

  /** Looks at the error, its causes and its aggregated errors. Getters of a thrown object may throw. */
  find(error: unknown): FailureOrigin | undefined {
    try {
      return this.#find(error, 0);
    } catch {
      return undefined;
    }
  }

  #find(error: unknown, depth: number): FailureOrigin | undefined {
    if (typeof error !== "object" || error === null || depth > MAX_CAUSES) return undefined;
    const found = this.#byError.get(error);
    if (found !== undefined) return found;
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    return this.#find(cause, depth + 1) ?? (Array.isArray(errors) ? this.#find(errors[0], depth + 1) : undefined);
  }
}
