import type { NewCheckpoint, Outcome, Write } from "../../../src/kernel/index.ts";
import { answering, changed, currentToken, methods, rewriting, turns, without, type Mutant } from "./mutant.ts";

function checkpoints(name: string, change: (checkpoint: NewCheckpoint, run: number) => NewCheckpoint): Mutant {
  return turns(name, (turn) =>
    turn.checkpoints ? { ...turn, checkpoints: turn.checkpoints.map((one) => change(one, turn.run)) } : turn,
  );
}

/** Replaces the outcome `from` of a commit with checkpoints by `to`. */
function saying(name: string, from: string, to: "already_committed" | "conflict" | "lease_lost"): Mutant {
  return answering(name, (outcome: Outcome, write: Write) => {
    const isOf = write.write === "turn" && write.checkpoints !== undefined;
    return isOf && "status" in outcome && outcome.status === from ? { status: to } : outcome;
  });
}

export const checkpointsMutants: readonly Mutant[] = [
  turns("checkpoints are not stored", (turn) => without(turn, "checkpoints") as typeof turn),
  checkpoints("labels are not stored", (checkpoint) => ({ ...checkpoint, label: undefined })),
  checkpoints("every checkpoint has a state", (checkpoint) => ({ ...checkpoint, state: checkpoint.state ?? "{}" })),
  saying("a repeated checkpoint is a conflict", "already_committed", "conflict"),
  saying("another state is treated as the same checkpoint", "conflict", "already_committed"),
  rewriting("every worker that commits a checkpoint counts as the holder", async (write, store) => {
    if (write.write !== "turn" || write.checkpoints === undefined) return write;
    return { ...write, token: (await currentToken(store, write.run)) ?? write.token };
  }),
  checkpoints("keys are unique per run only", (checkpoint, run) => ({
    ...checkpoint,
    key: `${run} ${checkpoint.key}`,
  })),
  methods("checkpoints are read without limit", (store) => ({
    readCheckpoints: (run: number, after: number) => store.readCheckpoints(run, after),
  })),
  methods("the newest checkpoint is returned instead of the newest whole one", (store) => ({
    findCheckpoint: (run: number, step: number) => store.findCheckpoint(run, step, false),
  })),
  {
    name: "checkpoints outlive their pruned run",
    wrap(store) {
      let seen: readonly NewCheckpoint[] = [];
      return changed(store, {
        async readCheckpoints(run: number, after: number, limit?: number) {
          const found = await store.readCheckpoints(run, after, limit);
          if (found.length > 0) seen = found;
          return seen;
        },
      });
    },
  },
];
