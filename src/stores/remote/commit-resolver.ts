// CommitResolver: commits a batch and resolves an unknown outcome instead of guessing it (rules.A8).
//
// commit-resolver.O1. Every commit has a number, one higher than the last of its connection, and stamps its writer's row with it.
// commit-resolver.O2. When the connection breaks after COMMIT was sent, it is destroyed, and the outcome is read over another
//   connection. That also fences the writer: a commit still in flight can no longer succeed.
// commit-resolver.O3. When the outcome cannot be read either, the caller gets an error with `unresolved`. Nothing was
//   acknowledged; a commit that did succeed is found when the leases expire.

import { invariant, type EpochMs } from "../../base/index.ts";
import { ConnectionError, type Backend, type Change, type CommitOutcome } from "./backend.ts";
import type { History } from "./history.ts";
import type { ConnectionPool, PooledConnection } from "./connection-pool.ts";
import { withRetry, unreachableError, type RetryOptions } from "./retry.ts";

/** `lost`: the connection broke and the commit did not happen. */
export type ResolvedOutcome = CommitOutcome | "lost";

export class CommitResolver {
  readonly #backend: Backend;
  readonly #pool: ConnectionPool;
  readonly #options: RetryOptions;
  readonly #retryForMs: number;
  readonly #history: History;

  constructor(backend: Backend, pool: ConnectionPool, history: History, options: RetryOptions, retryForMs: number) {
    this.#backend = backend;
    this.#pool = pool;
    this.#history = history;
    this.#options = options;
    this.#retryForMs = retryForMs;
  }

  async commit(
    what: string,
    on: PooledConnection,
    mark: EpochMs,
    changes: readonly Change[],
  ): Promise<ResolvedOutcome> {
    const batch = ++on.batch;
    invariant(batch > on.acknowledged, "a connection commits a batch number that was acknowledged before");
    const { epoch } = this.#history;
    const check = this.#history.checkFor(on);
    try {
      const outcome = await on.connection.commit(batch, mark, changes, check);
      if (outcome === "committed") this.#history.acknowledged(on, batch, check);
      else if (outcome === "rolled_back") {
        on.connection.destroy();
        this.#history.lost(`it lacks commit ${check.previous} of a connection, which it acknowledged`, epoch);
      }
      return outcome;
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      if (error.reason === "retry") return "retry";
      // commit-resolver.O2
      on.connection.destroy();
      const last = await this.#lastBatch(what, on.connection.writer, error);
      if (last < check.previous)
        this.#history.lost(
          `it acknowledged commit ${check.previous} of a connection, but its last commit of that connection is ${last}`,
          epoch,
        );
      if (last < batch) return "lost";
      this.#history.acknowledged(on, batch, check);
      return "committed";
    }
  }

  /** Over a `control` connection: the write connections may all be broken. */
  async #lastBatch(what: string, writer: string, cause: unknown): Promise<number> {
    try {
      return await withRetry(
        this.#options,
        what,
        () => this.#pool.use("control", ({ connection }) => this.#backend.lastBatch(connection, writer)),
        this.#retryForMs,
      );
    } catch (error) {
      throw unreachableError(
        `${what}: the connection broke after COMMIT was sent, and the outcome could not be read`,
        cause,
        {
          unresolved: true,
          lookup: String(error),
        },
      );
    }
  }
}
