// RunStopper: stops a run that must not continue (rules.A3), and stores the evidence. `resume` continues it with fixed code.

import { encode, RepriseError, shellWord } from "../base/index.ts";
import {
  dataWithoutSecrets,
  emit,
  isObserved,
  type OpenSpan,
  type RunRecord,
  type StopWrite,
} from "../kernel/index.ts";
import type { Stop } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import { locateStall } from "./locate-stall.ts";
import type { PartsOf } from "./worker-parts.ts";

type StopParts = PartsOf<"log" | "options" | "persistentWrites" | "pump">;
type UsedParts = StopParts & PartsOf<"isStopped" | "runs" | "starts" | "store" | "timers">;

export class RunStopper {
  readonly #parts: UsedParts;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  stopStalled(run: HotRun): void {
    const { token, record, execution } = run;
    const { runs, starts } = this.#parts;
    const span = run.journal.takeStretch("blocked");
    runs.releaseMemory(run);
    const locating = runs.loading.begin(record.run);
    void locateStall(this.#parts, record, execution, (recorded) => starts.replay(run, recorded)).then(() => {
      runs.loading.end(record.run, locating);
      if (token === undefined || this.#parts.isStopped) return;
      this.stopWith(record, token, evidenceOf(run), "blocked", execution.stop?.message ?? "", span);
    });
  }

  stopBroken(run: HotRun, error: unknown): void {
    const { token, record } = run;
    if (run.isDiscarded) return;
    if (token === undefined) return this.#parts.log.report(error);
    this.#parts.runs.releaseMemory(run);
    this.stopClaimed(record, token, error, run.journal.takeStretch("blocked"));
  }

  stopClaimed(record: RunRecord, token: string, error: unknown, span?: OpenSpan): void {
    this.#parts.log.report(error);
    const { message, evidence } = blockedEvidence(error);
    this.stopWith(record, token, evidence, "blocked", message, span);
  }

  stopRun(run: HotRun, evidence: string, status: Stop["status"]): void {
    const { token, record } = run;
    if (token === undefined) return;
    this.#parts.runs.releaseMemory(run);
    this.stopWith(record, token, evidence, status, run.execution.stop?.message ?? "", run.journal.takeStretch(status));
  }

  stopWith(
    record: RunRecord,
    token: string,
    evidence: string,
    status: Stop["status"],
    message: string,
    span?: OpenSpan,
  ): void {
    submitStop(this.#parts, record, { write: "stop", run: record.run, token, status, evidence, span }, message);
  }
}

/** The evidence of a run whose code stopped it, stored beside the journal. */
export function evidenceOf({ execution: { stop }, record }: HotRun): string {
  if (stop === undefined) return "{}";
  const { differs: _, ...evidence } = stop;
  return encode(dataWithoutSecrets({ ...evidence, head: record.head }));
}

/** The evidence of an error that stops a run; `where`: the node. */
export function blockedEvidence(
  error: unknown,
  where?: string,
): { readonly message: string; readonly evidence: string } {
  const { code, message } =
    error instanceof RepriseError ? error : { code: "INVARIANT" as const, message: String(error) };
  const data = { code, message, status: "blocked", ...(where !== undefined && { where }) };
  return { message, evidence: encode(dataWithoutSecrets(data)) };
}

/** Stops a run, under the token of its turn or of one of its items. */
export function submitStop(
  { pump, log, options, persistentWrites }: StopParts,
  record: RunRecord,
  write: StopWrite,
  message: string,
): void {
  const { run, token, item, status } = write;
  const { id, definition } = record;
  const reason = message.replace(/\.?$/, ".");
  options.log("error", `Run ${id} of ${definition} is stopped: ${reason} Next: \`reprise show ${shellWord(id)}\`.`, {
    run: id,
    definition,
    status,
  });
  pump.submit(write).then(
    () => {
      if (isObserved()) emit({ event: "run.stopped", run: record.id, status, message });
      options.onUnheld(record);
    },
    (error: unknown) => {
      log.report(error);
      // Claimed again, the run stops again. An item is claimed again when its lease expires.
      if (item === undefined) persistentWrites.submit({ write: "return-turn", run, token });
    },
  );
}
