// Control of a run from outside.

import { CancelledError, RepriseError } from "../base/index.ts";
import { hasEnded, type EndedRunStatus } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { RunTarget } from "./run-messages.ts";

/** The run a handle stands for; its definition does not matter here. */
export type ControlledRun = Pick<RunTarget, "host" | "id">;

/** A cancel is a request: the run ends when its code lets the cancellation through. */
export async function cancelRun({ host, id }: ControlledRun, reason: string | undefined): Promise<void> {
  host.checkOpen();
  checkReason(reason, "cancel");
  const { worker } = host;
  const arrival = { type: "CancelRequested", target: "", data: entryData.cancelRequestedData(reason) } as const;
  const outcome = await worker.submit({ write: "message", to: id, arrival, once: false });
  if (outcome.status === "committed") return worker.onArrival(outcome.run);
  if (outcome.status === "ended") throw ended(id, outcome.as, "be cancelled");
  throw notFound(id);
}

/** C1. In another process the code stops within a moment. */
export async function pauseRun({ host, id }: ControlledRun): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const outcome = await worker.submit({ write: "pause", id });
  if (outcome.status === "committed") return worker.onPaused(outcome.run);
  if (outcome.status === "no_run") throw notFound(id);
  throw hasEnded(outcome.as)
    ? ended(id, outcome.as, "be paused")
    : new RepriseError("USAGE", `Run ${id} is ${outcome.as}: it does not go on anyway, and needs no pause.`);
}

export async function resumeRun({ host, id }: ControlledRun): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const outcome = await worker.submit({ write: "resume", id });
  if (outcome.status === "committed") return worker.onResumed(outcome.run);
  if (outcome.status === "no_run") throw notFound(id);
  if (hasEnded(outcome.as)) throw ended(id, outcome.as, "be resumed");
  throw new RepriseError("USAGE", `Run ${id} is ${outcome.as}; only a blocked, violated or paused run can be resumed.`);
}

/** C2 */
export async function terminateRun({ host, id }: ControlledRun, reason: string | undefined): Promise<void> {
  host.checkOpen();
  checkReason(reason, "terminate");
  const { worker } = host;
  const said = reason === undefined ? "." : `: ${reason}`;
  const outcome = await worker.submit({
    write: "terminate",
    id,
    data: entryData.terminatedData(reason),
    answer: entryData.childFailedData(id, new CancelledError(`Run ${id} was terminated${said}`)),
    cancel: entryData.cancelRequestedData(`Its parent ${id} was terminated${said}`),
  });
  if (outcome.status === "committed") return worker.onTerminated(outcome.record, outcome.notified);
  if (outcome.status === "ended") throw ended(id, outcome.as, "be terminated");
  throw notFound(id);
}

/** For who wants the run to be over: that it is already is no failure. */
export async function unlessEnded(steering: Promise<void>): Promise<void> {
  await steering.catch((error: unknown) => {
    if (!(error instanceof RepriseError && error.code === "RUN_ENDED")) throw error;
  });
}

function checkReason(reason: unknown, what: string): void {
  if (reason !== undefined && typeof reason !== "string")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a text as reason, got ${typeof reason}.`);
}

function notFound(id: string): RepriseError {
  return new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Start it first, or check the id and the store.`);
}

function ended(id: string, as: EndedRunStatus, what: string): RepriseError {
  return new RepriseError("RUN_ENDED", `Run ${id} has ended (${as}) and cannot ${what}.`);
}
