// Claim dispatch: starts claimed work, or releases it when the worker began to drain after it sent the claim (worker.R2).
//
// A suspect (store.S5) puts its worker in quarantine. A draining worker does not release a suspect item, because a released
// item is no longer a suspect: its lease expires instead.

import { isEventLine, type ClaimedMessage, type ClaimedTurn } from "../kernel/index.ts";
import type { RunningItem } from "./running-item.ts";
import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<
  "drain" | "log" | "outbox" | "persistentWrites" | "pump" | "quarantine" | "slots" | "starts" | "store" | "tasks"
>;

export class ClaimDispatch {
  readonly #parts: UsedParts;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  turn(turn: ClaimedTurn): void {
    const { drain, persistentWrites, quarantine, starts } = this.#parts;
    const { run } = turn.record;
    if (drain.isDraining) return persistentWrites.submit({ write: "return-turn", run, token: turn.token });
    if (turn.suspicion > 0) quarantine.add(String(run), turn.suspicion);
    starts.start(turn);
  }

  item(running: RunningItem): void {
    const { drain, persistentWrites, quarantine, starts, tasks } = this.#parts;
    const { run, item, token, attempt, execution, slot, suspicion, turn } = running.item;
    if (!tasks.isExpected(running)) return;
    if (drain.isDraining) {
      tasks.cancelExpected(running);
      if (turn !== undefined) persistentWrites.submit({ write: "return-turn", run, token });
      const unused = { attempt, executions: execution - 1, ...(slot && { slot }) };
      if (suspicion === 0) persistentWrites.submit({ write: "return-item", run, item, token, ...unused });
      return;
    }
    if (suspicion > 0) quarantine.add(`${run} ${item}`, suspicion);
    // Before the task, whose result joins the commit of the turn.
    if (turn !== undefined) starts.start({ record: turn, token, inbox: [], suspicion: 0 }, 1);
    tasks.startClaimed(running);
  }

  message(message: ClaimedMessage): void {
    const { drain, outbox, slots, store, pump, log } = this.#parts;
    const { firstRun, run, seq, token, attempt } = message;
    if (drain.isDraining) {
      const availableAt = store.now();
      // Not repeated: a draining worker's lease ends soon and releases the message too.
      pump
        .submit({ write: "return-message", firstRun, run, seq, token, attempt, availableAt })
        .catch((error: unknown) => log.report(error));
      return;
    }
    // webhook-relay.W1
    if (!isEventLine(firstRun)) slots.acquire();
    outbox.deliver(message);
  }
}
