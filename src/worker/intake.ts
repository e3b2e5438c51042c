// Intake: what becomes of what was claimed. It begins at once, or is given back at once when the worker has begun to drain
// since the claim was sent (R5). A suspect (S5) keeps its worker to itself. An item given back is no suspect any more, so that is
// left to the end of the lease.

import type { ClaimedItem, ClaimedMessage, ClaimedTurn, MessageBackWrite } from "../kernel/index.ts";
import type { ClaimerHost } from "./claimer.ts";
import type { Insisted } from "./claims-given-back.ts";
import type { Solitude } from "./solitude.ts";
import type { Slots } from "./slots.ts";

export interface IntakeHost {
  readonly solitude: Solitude;
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
      if (turn.suspect) host.solitude.begin(String(run));
      host.startTurn(turn);
    },
    onItem(claimed) {
      const { run, item, token, attempt, line, suspect } = claimed;
      if (!host.mayStart()) {
        if (!suspect) host.insist({ write: "item-back", run, item, token, attempt, ...(line && { line }) });
        return;
      }
      if (suspect) host.solitude.begin(`${run} ${item}`);
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
