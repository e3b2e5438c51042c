// Control of a run from outside.

import { RepriseError } from "../base/index.ts";
import { entryData } from "../workflow/index.ts";
import { send, type Target } from "./run-messages.ts";

/** A cancel is a request; a run that has ended meanwhile needs none. */
export async function cancelRun(target: Target, reason: string | undefined): Promise<void> {
  await send(
    target,
    { type: "CancelRequested", target: "", data: entryData.cancelRequestedData(reason) },
    { endedIsFine: true },
  );
}

export async function resumeRun({ host, id }: Target): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const outcome = await worker.pump.submit({ write: "resume", id });
  if (outcome.status === "committed") return worker.runs.arrived(outcome.run);
  if (outcome.status === "no-run") throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}.`);
  throw new RepriseError("USAGE", `Run ${id} is ${outcome.as}; only a blocked, violated or paused run can be resumed.`);
}
