// Control of a run: cancel, pause, resume, terminate.

import { CancelledError, RepriseError } from "../base/index.ts";
import { hasEnded, type EndedRunStatus } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { RunTarget } from "./run-messages.ts";

/** A run without its definition. */
export type ControlledRun = Pick<RunTarget, "host" | "id">;

/** Requests cancellation: the run ends when its code lets the `CancelledError` through. */
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

/** control.C1. A worker in another process stops the code when it notices the change. */
export async function pauseRun({ host, id }: ControlledRun): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const outcome = await worker.submit({ write: "pause", id });
  if (outcome.status === "committed") return worker.onPaused(outcome.run);
  if (outcome.status === "no_run") throw notFound(id);
  throw hasEnded(outcome.as)
    ? ended(id, outcome.as, "be paused")
    : new RepriseError("USAGE", `Run ${id} is ${outcome.as}: it is stopped already and cannot be paused.`);
}

export async function resumeRun({ host, id }: ControlledRun): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const outcome = await worker.submit({ write: "resume", id });
  if (outcome.status === "committed") return worker.onResumed(outcome.run);
  if (outcome.status === "no_run") throw notFound(id);
  if (hasEnded(outcome.as)) throw ended(id, outcome.as, "be resumed");
  throw new RepriseError(
    "USAGE",
    `Run ${id} is ${outcome.as}; only a paused, blocked or determinism_violation run can be resumed.`,
  );
}

/** control.C2 */
export async function terminateRun({ host, id }: ControlledRun, reason: string | undefined): Promise<void> {
  host.checkOpen();
  checkReason(reason, "terminate");
  const { worker } = host;
  const suffix = reason === undefined ? "." : `: ${reason}`;
  const outcome = await worker.submit({
    write: "terminate",
    id,
    data: entryData.terminatedData(reason),
    answer: entryData.childFailedData(id, new CancelledError(`Run ${id} was terminated${suffix}`)),
    cancel: entryData.cancelRequestedData(`Its parent ${id} was terminated${suffix}`),
  });
  if (outcome.status === "committed") return worker.onTerminated(outcome.record, outcome.notified);
  if (outcome.status === "ended") throw ended(id, outcome.as, "be terminated");
  throw notFound(id);
}

/** A caller that wants the run to end accepts that it has ended already. */
export async function ignoreEnded(control: Promise<void>): Promise<void> {
  await control.catch((error: unknown) => {
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
