// Words: every statement the rules are written in, over the rows of a transaction.
//
// V1. A word means what its SQL text in SQLite says: the same rows, in the same order, under the same names.
// V2. A word that needs what nobody has loaded misses (W1), for all that the rules will ask for next where it knows.
// V3. Rows are locked as `Mode` says; nothing is changed that was not locked, or is checked by the commit.

import type { Write } from "../../kernel/index.ts";
import type { Statements } from "../rules/statements.ts";
import { checkpointWords } from "./words-checkpoints.ts";
import { flowWords } from "./words-flows.ts";
import { lineWords } from "./words-lines.ts";
import { messageWords } from "./words-messages.ts";
import { queueWords } from "./words-queue.ts";
import { readWords } from "./words-reads.ts";
import { runWords } from "./words-runs.ts";
import { scheduleWords } from "./words-schedules.ts";
import { startWords } from "./words-starts.ts";
import { streamWords } from "./words-streams.ts";
import { sweepWords } from "./words-sweep.ts";
import { workerWords } from "./words-workers.ts";
import { lockOf, type Mode, type Speech } from "./word.ts";
import type { WorkingSet } from "./working-set.ts";

export type { Mode } from "./word.ts";

export interface Hints {
  /** The list that is applied. */
  readonly writes?: readonly Write[];
}

interface Spoken {
  readonly speech: Speech;
  readonly words: Statements;
}

/** Some two hundred words are made once for each set, not for each transaction. */
const SPOKEN = new WeakMap<WorkingSet, Partial<Record<Mode, Spoken>>>();

/** The words of a set and a mode are the same ones each time; the hints are those given last. */
export function wordsOf(ws: WorkingSet, mode: Mode, hints: Hints = {}): Statements {
  let modes = SPOKEN.get(ws);
  if (modes === undefined) SPOKEN.set(ws, (modes = {}));
  const { speech, words } = (modes[mode] ??= spokenOf(ws, mode));
  speech.writes = hints.writes ?? [];
  return words;
}

function spokenOf(ws: WorkingSet, mode: Mode): Spoken {
  const speech: Speech = { ws, mode, writes: [], lock: (table) => lockOf(mode, table) };
  const words = {
    ...runWords(speech),
    ...startWords(speech),
    ...messageWords(speech),
    ...queueWords(speech),
    ...lineWords(speech),
    ...flowWords(speech),
    ...checkpointWords(speech),
    ...streamWords(speech),
    ...scheduleWords(speech),
    ...workerWords(speech),
    ...sweepWords(speech),
    ...readWords(speech),
  };
  return { speech, words };
}
