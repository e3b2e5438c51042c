// Cold load: a run that is not in memory is brought back by replaying its journal.

import { decode, type Timers } from "../base/index.ts";
import { forkedOf, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import {
  driveThrough,
  EmittedChunks,
  indexJournal,
  unknownFlags,
  type Execution,
  type Recorded,
  type WorkflowBody,
} from "../workflow/index.ts";
import { readPast } from "./read-past.ts";

export type Loaded =
  | { readonly status: "ready"; readonly execution: Execution; readonly isNew: boolean }
  /** It must not be run as it is; `code` and `message` are the evidence. */
  | { readonly status: "unfit"; readonly code: string; readonly message: string; readonly seq: number };

export async function loadCold(
  store: Store,
  timers: Timers,
  record: RunRecord,
  body: WorkflowBody,
  newExecution: (recorded: Recorded) => Execution,
): Promise<Loaded> {
  const { entries, fault, restored, keptAt = 0 } = await readPast(store, record, body);
  if (fault !== undefined)
    return {
      status: "unfit",
      code: fault.code ?? "STORE_CORRUPT",
      message: `${fault.code === undefined ? "The journal is damaged: " : ""}${fault.problem}.`,
      seq: fault.seq,
    };
  const strange = unknownFlags(flagsOf(entries));
  if (strange.length > 0)
    return {
      status: "unfit",
      code: "STORE_NEWER_SCHEMA",
      message: `The run was started by a newer version (replay flags ${strange.join(", ")}). Update reprise, then resume the run.`,
      seq: 1,
    };
  const recorded = indexJournal(entries);
  const execution = newExecution(recorded);
  if (Object.values(execution.body.ports).some(({ port }) => port === "stream"))
    execution.emitted = new EmittedChunks(await store.readEmitted(record.run));
  if (restored !== undefined) {
    execution.from = restored.position;
    execution.keptAt = keptAt;
    for (const { type, data } of restored.told) execution.tell(type, data, record.createdAt);
  }
  await driveThrough(execution, recorded, timers);
  if (execution.stop === undefined) execution.caughtUp();
  // FK2. A fork begins with two entries.
  const isNew = record.head === (forkedOf(recorded.started.data) === undefined ? 1 : 2);
  return { status: "ready", execution, isNew };
}

function flagsOf([first]: readonly Entry[]): readonly number[] {
  return first === undefined ? [] : ((decode(first.data) as { flags?: number[] }).flags ?? []);
}
