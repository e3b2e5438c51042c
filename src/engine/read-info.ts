// Read info: what `run.info` and `engine.find` say about one run. Every read is bounded: the journal is not read, except its ends.

import { decode, RepriseError } from "../base/index.ts";
import { explainRun, type WaitReason } from "../explain/index.ts";
import {
  dataWithoutSecrets,
  decodeData,
  hasEnded,
  runtimesOf,
  type AttemptRecord,
  type Entry,
  type FailureData,
  type Redaction,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import type { AttemptCounts, RunInfo } from "./api.ts";
import { infoOf } from "./run-info.ts";

interface InfoHost {
  readonly store: Store;
  readonly redaction: Redaction;
}

export async function readInfo({ store, redaction }: InfoHost, record: RunRecord): Promise<RunInfo> {
  const { run, head } = record;
  const [first] = head === 0 ? [] : await store.readJournal(run, 0, 1);
  const [last] = hasEnded(record.status) && head > 0 ? await store.readJournal(run, head - 1, 1) : [];
  const { error, ...info } = infoOf(record, last);
  const { waitsFor, worker, parent } = await explainRun(store, record);
  return {
    ...info,
    ...(error !== undefined && {
      error: error instanceof RepriseError ? redaction.error(error) : dataWithoutSecrets(error),
    }),
    ...payloadsOf(first, last),
    ...(parent !== undefined && { parent }),
    runtimes: runtimesOf(record),
    children: await store.countChildren(run),
    ...(worker !== undefined && { worker }),
    waitsFor: waitsFor.map((reason) => redacted(reason, redaction)),
    attempts: attemptsOf(await store.readAttempts(run), redaction),
  };
}

function payloadsOf(first: Entry | undefined, last: Entry | undefined): Pick<RunInfo, "input" | "output"> {
  const started = first?.type === "RunStarted" ? decodeData(first.type, first.data) : undefined;
  const completed = last?.type === "RunCompleted" ? decodeData(last.type, last.data) : undefined;
  return {
    ...(started !== undefined && "input" in started && { input: started.input }),
    ...(completed !== undefined && "output" in completed && { output: completed.output }),
  };
}

/** A sentence may quote an error or what a promise shows. */
function redacted(reason: WaitReason, redaction: Redaction): WaitReason {
  const text = redaction.text(reason.text);
  if (reason.reason === "child")
    return { ...reason, text, waitsFor: reason.waitsFor.map((one) => redacted(one, redaction)) };
  if (reason.reason === "promise" && "show" in reason) return { ...reason, text, show: redaction.data(reason.show) };
  if (reason.reason === "retry" && "error" in reason) return { ...reason, text, error: redaction.data(reason.error) };
  return { ...reason, text };
}

function attemptsOf(attempts: readonly AttemptRecord[], redaction: Redaction): AttemptCounts {
  const count = (wanted: AttemptRecord["outcome"]): number =>
    attempts.filter(({ outcome }) => outcome === wanted).length;
  const last = attempts.findLast(({ outcome }) => outcome === "failed");
  return {
    failed: count("failed"),
    lost: count("lost"),
    returned: count("returned"),
    ...(last !== undefined && {
      lastFailure: {
        step: last.step,
        attempt: last.attempt + 1,
        at: new Date(last.at),
        ...(last.worker !== undefined && { worker: last.worker }),
        error: last.data === undefined ? undefined : redaction.data((decode(last.data) as FailureData).error),
      },
    }),
  };
}
