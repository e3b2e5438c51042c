// Loads a run that is not in memory: replays its journal.

import { shellWord } from "../base/index.ts";
import { decodeData, forkChangesOf, forkOriginOf, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import {
  driveThrough,
  EmittedChunks,
  ForkAnswers,
  indexJournalInTurns,
  readHistory,
  unknownFlags,
  type Execution,
  type RecordedJournal,
  type WorkflowBody,
} from "../workflow/index.ts";
import { loadJournal } from "./load-journal.ts";
import { ENTRY_SIZE } from "./journal-writer.ts";
import type { WorkerOptions } from "./worker-options.ts";

export type LoadedRun =
  /** `size`: about the size of its entries in memory. */
  | { readonly status: "ready"; readonly execution: Execution; readonly isNew: boolean; readonly size: number }
  /** The run must be stopped; `code` and `message` are the evidence. */
  | { readonly status: "unfit"; readonly code: string; readonly message: string; readonly seq: number };

export async function loadRun(
  { store, timers, onLoaded }: Pick<WorkerOptions, "store" | "timers" | "onLoaded">,
  record: RunRecord,
  body: WorkflowBody,
  newExecution: (recorded: RecordedJournal) => Execution,
): Promise<LoadedRun> {
  const { entries, fault, restored, checkpointSeq = 0 } = await loadJournal(store, timers, record, body);
  if (fault !== undefined)
    return {
      status: "unfit",
      code: fault.code ?? "STORE_CORRUPT",
      message: `${fault.code === undefined ? "The journal is damaged: " : ""}${fault.problem}.`,
      seq: fault.seq,
    };
  const unknown = unknownFlags(flagsOf(entries));
  if (unknown.length > 0)
    return {
      status: "unfit",
      code: "STORE_NEWER_SCHEMA",
      message: `A newer version of reprise started run ${record.id} (replay flags ${unknown.join(", ")}), so this version cannot replay it. Update reprise, then run \`reprise resume ${shellWord(record.id)}\`.`,
      seq: 1,
    };
  const recorded = await indexJournalInTurns(entries, timers);
  const execution = newExecution(recorded);
  if (Object.values(execution.body.ports).some(({ port }) => port === "stream"))
    execution.emitted = new EmittedChunks(await store.readEmitted(record.run));
  const changes = forkChangesOf(recorded.started.data);
  if (changes !== undefined) execution.answers = new ForkAnswers(changes, await readOriginOf(store, recorded), entries);
  if (record.lostTurns > 0)
    execution.lostTurns.heads = (await store.readAttempts(record.run, "")).map(({ seq }) => seq);
  if (restored !== undefined) {
    execution.lostTurns.deliveredSeq = checkpointSeq;
    execution.restoredPosition = restored.position;
    execution.checkpointSeq = checkpointSeq;
    for (const message of restored.delivered) execution.deliveries.restoreMessage(message, record.createdAt);
  }
  await driveThrough(execution, recorded, timers);
  if (execution.stop === undefined) {
    execution.caughtUp();
    onLoaded?.(record);
  }
  // fork.F2. A fork starts with two entries.
  const isNew = record.head === (forkOriginOf(recorded.started.data) === undefined ? 1 : 2);
  const size = entries.reduce((sum, { data }) => sum + data.length + ENTRY_SIZE, 0);
  return { status: "ready", execution, isNew, size };
}

/** fork-answers.A2. The history of the origin, if the effects of the fork are those that it recorded. */
async function readOriginOf(store: Store, { started }: RecordedJournal): Promise<readonly Entry[]> {
  const { forked } = started.data;
  if (forked?.effects !== "recorded") return [];
  const origin = await store.findRun(forked.run, "at" in forked ? forked.generation : undefined);
  return origin === undefined ? [] : readHistory(store, origin.run);
}

function flagsOf([first]: readonly Entry[]): readonly number[] {
  return first === undefined ? [] : (decodeData("RunStarted", first.data).flags ?? []);
}
