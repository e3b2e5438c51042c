// Outcomes: a commit whose answer got lost is never guessed (A8).
//
// O1. Every commit has a number, one higher than the last of its link, and stamps its writer's row with it.
// O2. When the connection breaks after COMMIT was sent, the link is destroyed and the database asked over another one, which
//     also closes the writer: whatever of the commit is still under way can no more get in. Then it is in, or it is not.
// O3. When the database cannot be asked either, whoever waits is told so (`unresolved`). Nothing was acknowledged, and what
//     is in is found when the leases run out.

import type { EpochMs } from "../../base/index.ts";
import { LinkError, type Backend, type Change, type CommitOutcome } from "./backend.ts";
import type { History } from "./history.ts";
import type { Links, WriteLink } from "./links.ts";
import { patiently, unreachable, type Waiting } from "./patience.ts";

/** `lost`: it turned out not to have happened. */
export type KnownOutcome = CommitOutcome | "lost";

export class Outcomes {
  readonly #backend: Backend;
  readonly #links: Links;
  readonly #waiting: Waiting;
  readonly #patienceMs: number;
  readonly #history: History;

  constructor(backend: Backend, links: Links, history: History, waiting: Waiting, patienceMs: number) {
    this.#backend = backend;
    this.#links = links;
    this.#history = history;
    this.#waiting = waiting;
    this.#patienceMs = patienceMs;
  }

  async commit(what: string, on: WriteLink, mark: EpochMs, changes: readonly Change[]): Promise<KnownOutcome> {
    const batch = ++on.batch;
    const { epoch } = this.#history;
    const check = this.#history.checkFor(on);
    try {
      const outcome = await on.link.commit(batch, mark, changes, check);
      if (outcome === "committed") this.#history.acknowledged(on, batch, check);
      else if (outcome === "rolled-back") {
        on.link.destroy();
        this.#history.lost(
          `commits that it acknowledged on a connection are gone (the last was number ${check.previous})`,
          epoch,
        );
      }
      return outcome;
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      if (error.reason === "again") return "again";
      // O2
      on.link.destroy();
      const last = await this.#lastBatch(what, on.link.writer, error);
      if (last < check.previous)
        this.#history.lost(`it acknowledged ${check.previous} commits of a connection and has ${last}`, epoch);
      if (last < batch) return "lost";
      this.#history.acknowledged(on, batch, check);
      return "committed";
    }
  }

  /** Over a link of another kind: those of writers may all be in the same trouble. */
  async #lastBatch(what: string, writer: string, cause: unknown): Promise<number> {
    try {
      return await patiently(
        this.#waiting,
        what,
        () => this.#links.use("small", ({ link }) => this.#backend.lastBatch(link, writer)),
        this.#patienceMs,
      );
    } catch (error) {
      throw unreachable(`${what}: COMMIT was not answered, and nobody could be asked whether it happened`, cause, {
        unresolved: true,
        asking: String(error),
      });
    }
  }
}
