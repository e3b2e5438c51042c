// ctx.sleep and ctx.sleepUntil: timers, which can be cancelled.

import { CancelledError } from "../base/index.ts";
import { isViolation } from "./commands.ts";
import { timerCancelledData, timerStartedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { ignore, never, refused } from "./refusals.ts";

export interface AskedTimer {
  readonly promise: Promise<void>;
  cancel(): void;
}

export function askTimer(execution: Execution, timerId: "sleep" | "sleepUntil", ms: number): AskedTimer {
  const { refusal } = execution;
  if (refusal !== undefined) return { promise: refused(refusal), cancel: ignore };
  const command = execution.command("Timer", "StartTimer", { timerId }, (recorded) =>
    timerId === recorded.data["timerId"] && ms !== recorded.data["ms"]
      ? { what: "Timer duration", expected: ms, actual: recorded.data["ms"] }
      : undefined,
  );
  if (command === undefined) return { promise: never(), cancel: ignore };
  if (!command.known) {
    const data = timerStartedData(command.index, timerId, ms, execution.isShielded);
    const due = timerId === "sleep" ? { afterMs: ms } : { at: ms };
    execution.asks.push({ ask: "timer", command: command.id, data, due });
  }
  const promise = execution.open("Timer", command.id, timerId, true) as Promise<void>;
  return { promise, cancel: () => cancelTimer(execution, command.id, timerId) };
}

function cancelTimer(execution: Execution, id: string, timerId: string): void {
  const wait = execution.waits.get(id);
  // Fired already, though perhaps not delivered: E4.
  if (wait === undefined || wait.closing || execution.stop !== undefined) return;
  const cancel = execution.commands.nextCancel(id, timerId);
  if (isViolation(cancel)) return execution.violate(cancel);
  if (!cancel.known)
    execution.asks.push({ ask: "cancel-timer", command: id, data: timerCancelledData(cancel.index, timerId) });
  execution.fail(id, new CancelledError("The timer was cancelled."));
}
