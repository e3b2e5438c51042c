// Transact: the user's SQL, then the turn's fence and entries, then COMMIT, all on one link of its own (U1–U3).

import { RepriseError } from "../../base/index.ts";
import type { TransactOutcome, TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import { LinkError } from "./backend.ts";
import { workOn } from "./batches.ts";
import type { History } from "./history.ts";
import type { WriteLink } from "./links.ts";
import type { Runner, Work } from "./runner.ts";

/** What an attempt came to, before anything is committed: thrown through the runner, which rolls back. */
class Undo extends Error {
  readonly outcome: TransactOutcome;
  constructor(outcome: TransactOutcome) {
    super("rolled back");
    this.outcome = outcome;
  }
}

export async function transact(
  runner: Runner,
  history: History,
  call: (db: unknown) => unknown,
  write: (result: unknown) => TurnWrite | undefined,
): Promise<TransactOutcome> {
  try {
    const { epoch } = history;
    return await runner.runWith("A transaction of the user's", async (on) => {
      if (history.epoch !== epoch) throw new Undo({ status: "lease-lost" });
      const turn = await attempted(on, call, write);
      if (turn === undefined) throw new Undo({ status: "unwanted" });
      return turnWork(turn);
    });
  } catch (error) {
    if (error instanceof Undo) return error.outcome;
    // COMMIT refused what the function did: a deferred constraint of the user's tables, or a transaction it had ended itself.
    if (!(error instanceof RepriseError) || error.code === "USAGE") return { status: "threw", error };
    throw error;
  }
}

function turnWork(turn: TurnWrite): Work<TurnOutcome> {
  const work = workOn([turn]);
  return {
    ...work,
    apply: (ws, now, nextRun, isQuick) => {
      const applied = work.apply(ws, now, nextRun, isQuick);
      if ("questions" in applied) return applied;
      const [outcome] = applied.result as readonly TurnOutcome[];
      // U2
      if (outcome!.status !== "committed") throw new Undo(outcome!);
      return { result: outcome!, nextRun: applied.nextRun };
    },
  };
}

/** What the function throws is its own failure, unless the connection or the database gave way under it. */
async function attempted(
  { link }: WriteLink,
  call: (db: unknown) => unknown,
  write: (result: unknown) => TurnWrite | undefined,
): Promise<TurnWrite | undefined> {
  const handle = await link.userHandle();
  try {
    const answer = call(handle.db);
    const result = await (handle.silence === undefined ? answer : Promise.race([answer, handle.silence]));
    if (handle.gaveUp === true) throw new LinkError("again");
    await handle.ended?.();
    return write(result);
  } catch (error) {
    if (error instanceof LinkError) throw error;
    // Also when the server has given it up meanwhile: whoever calls it again waits for it again.
    if (error instanceof RepriseError && error.code === "ATTEMPT_TIMEOUT") throw new Undo({ status: "threw", error });
    if (!link.isUsable) throw new LinkError("lost", { cause: error });
    if (handle.gaveUp === true) throw new LinkError("again", { cause: error });
    throw new Undo({ status: "threw", error });
  } finally {
    handle.close();
  }
}
