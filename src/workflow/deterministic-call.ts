// ctx.deterministic: library code whose clock and random numbers are those of the run (library-values.ts, guard.U5).

import { RepriseError } from "../base/index.ts";
import type { Execution } from "./execution.ts";
import { LibraryValues, type LibraryRun } from "./library-values.ts";
import { callLibrary, nodeOfCaller, refuseInsideStep, workflowOfCaller } from "./scope.ts";

export function callDeterministic(execution: Execution, call: unknown): unknown {
  refuseInsideStep("Call the library directly: inside the step it uses the clock and the network of the machine.");
  if (typeof call !== "function")
    throw new RepriseError("BAD_OPTIONS", `ctx.deterministic: expected a function, got ${typeof call}.`);
  execution.host.library?.patch();
  const path = workflowOfCaller()?.library?.nestedPath() ?? execution.draws.libraryPath(nodeOfCaller());
  return callLibrary(new LibraryValues(libraryRun(execution), path), call as () => unknown);
}

function libraryRun(execution: Execution): LibraryRun {
  return {
    startedAt: execution.started.at,
    seed: () => execution.draws.seed,
    now: () => execution.now().getTime(),
  };
}
