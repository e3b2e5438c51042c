// Claim dispatch: starts claimed work, or releases it when the worker began to drain after it sent the claim (worker.R2).
//
// A suspect (store.S5) puts its worker in quarantine. A draining worker does not release a suspect item, because a released
// item is no longer a suspect: its lease expires instead.

import {
  isEventLine,
  type ClaimedItem,
  type ClaimedMessage,
  type ClaimedTurn,
  type ReturnMessageWrite,
} from "../kernel/index.ts";
import type { ClaimerHost } from "./claimer.ts";
import type { PersistentWrite } from "./released-claims.ts";
import type { Quarantine } from "./quarantine.ts";
import type { ExecutionSlots } from "./execution-slots.ts";

export interface ClaimDispatchHost {
  readonly quarantine: Quarantine;
  readonly slots: ExecutionSlots;
  mayStart(): boolean;
  now(): number;
  startTurn(turn: ClaimedTurn): void;
  startItem(item: ClaimedItem): void;
  startMessage(message: ClaimedMessage): void;
  persist(write: PersistentWrite): void;
  /** Not repeated: a draining worker's lease ends soon and releases the message too. */
  submit(write: ReturnMessageWrite): void;
}

export function claimDispatch(host: ClaimDispatchHost): Pick<ClaimerHost, "onTurn" | "onItem" | "onMessage"> {
  return {
    onTurn(turn) {
      const { run } = turn.record;
      if (!host.mayStart()) return host.persist({ write: "return-turn", run, token: turn.token });
      if (turn.suspicion > 0) host.quarantine.add(String(run), turn.suspicion);
      host.startTurn(turn);
    },
    onItem(claimed) {
      const { run, item, token, attempt, execution, slot, suspicion } = claimed;
      if (!host.mayStart()) {
        const unused = { attempt, executions: execution - 1, ...(slot && { slot }) };
        if (suspicion === 0) host.persist({ write: "return-item", run, item, token, ...unused });
        return;
      }
      if (suspicion > 0) host.quarantine.add(`${run} ${item}`, suspicion);
      host.startItem(claimed);
    },
    onMessage(message) {
      const { firstRun, run, seq, token, attempt } = message;
      if (!host.mayStart())
        return host.submit({
          write: "return-message",
          firstRun,
          run,
          seq,
          token,
          attempt,
          availableAt: host.now(),
        });
      // webhook-relay.W1
      if (!isEventLine(firstRun)) host.slots.acquire();
      host.startMessage(message);
    },
  };
}
