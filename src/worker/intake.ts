// Intake: what becomes of what was claimed. It begins at once, or is given back at once when the worker has begun to drain
// since the claim was sent (R5). A suspect (S5) puts its worker in quarantine. An item given back is no suspect any more, so that is
// left to the end of the lease.

import type { ClaimedItem, ClaimedMessage, ClaimedTurn, MessageBackWrite } from "../kernel/index.ts";
import type { ClaimerHost } from "./claimer.ts";
import type { Insisted } from "./claims-given-back.ts";
import type { Quarantine } from "./quarantine.ts";
import type { Slots } from "./slots.ts";

export interface IntakeHost {
  readonly quarantine: Quarantine;
  readonly slots: Slots;
  mayStart(): boolean;
  now(): number;
  startTurn(turn: ClaimedTurn): void;
  startItem(item: ClaimedItem): void;
  startMessage(message: ClaimedMessage): void;
  insist(write: Insisted): void;
  /** Not to be insisted on: the lease ends soon, and with it this. */
  submit(write: MessageBackWrite): void;
}

export function intakeOf(host: IntakeHost): Pick<ClaimerHost, "onTurn" | "onItem" | "onMessage"> {
  return {
    onTurn(turn) {
      const { run } = turn.record;
      if (!host.mayStart()) return host.insist({ write: "turn-back", run, token: turn.token });
      if (turn.suspicion > 0) host.quarantine.add(String(run), turn.suspicion);
      host.startTurn(turn);
    },
    onItem(claimed) {
      const { run, item, token, attempt, line, suspicion } = claimed;
      if (!host.mayStart()) {
        if (suspicion === 0) host.insist({ write: "item-back", run, item, token, attempt, ...(line && { line }) });
        return;
      }
      if (suspicion > 0) host.quarantine.add(`${run} ${item}`, suspicion);
      host.slots.take();
      host.startItem(claimed);
    },
    onMessage(message) {
      const { line, run, seq, token, attempt } = message;
      if (!host.mayStart())
        return host.submit({ write: "message-back", line, run, seq, token, attempt, availableAt: host.now() });
      host.slots.take();
      host.startMessage(message);
    },
  };
}
