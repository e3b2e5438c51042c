// Verdict body: what a replay or a verification says, with the journal and the source around the first difference.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { DifferenceBody, VerdictBody } from "../../contract/index.ts";
import { TimelineReader } from "../../explain/index.ts";
import {
  followChain,
  findHeadFault,
  type ChainPlace,
  type JournalFault,
  type RunRecord,
  type Store,
} from "../../kernel/index.ts";
import type { Replay, ReplayDifference } from "../../workflow/index.ts";
import { payloadToWire } from "../wire-payload.ts";
import { lineOf } from "./journal-page.ts";
import type { View } from "./view.ts";

const AROUND = 4;
const PAGE = 1_000;

export async function verdictBody(
  store: Store,
  record: RunRecord,
  { fault, replay }: { readonly fault: JournalFault | undefined; readonly replay: Replay | undefined },
  tookMs: number,
  view: View,
): Promise<VerdictBody> {
  const differences = replay === undefined ? [] : replay.status === "mismatch" ? [replay] : (replay.warnings ?? []);
  const [first] = differences;
  const at = fault?.seq ?? (first && (await seqOf(store, record, first)));
  const status = fault !== undefined ? "damaged" : first === undefined ? "same" : "different";
  const bodies = differences.map((one) => differenceBody(one, view));
  const source = await sourceAround(bodies[0]?.place);
  return {
    run: record.id,
    status,
    entries: record.head,
    agreed: at === undefined ? record.head : Math.max(0, at - 1),
    chain: { intact: fault === undefined, head: `sha256:${record.chain}` },
    gapFree: fault?.isMissing !== true,
    differences: fault === undefined ? bodies : [faultBody(fault), ...bodies],
    around: at === undefined ? [] : await entriesAround(store, record, at, view),
    ...(source !== undefined && { source }),
    tookMs: Math.round(tookMs),
  };
}

/** Where the journal and its chain of hashes disagree. */
export async function findFault(store: Store, { run, head, chain }: RunRecord): Promise<JournalFault | undefined> {
  let place: ChainPlace | JournalFault = followChain([]);
  for (let seq = 0; seq < head;) {
    const page = await store.readJournal(run, seq, Math.min(PAGE, head - seq));
    place = followChain(page, place as ChainPlace);
    if ("problem" in place) return place;
    if (page.length === 0) break;
    seq = page.at(-1)!.seq;
  }
  return findHeadFault(place as ChainPlace, { head, chain });
}

function faultBody({ seq, problem }: JournalFault): DifferenceBody {
  return { where: `entry ${seq}`, message: problem };
}

function differenceBody(difference: ReplayDifference, { redaction }: View): DifferenceBody {
  const { where, message, expected, actual, differs, step, node, attempt, place } = difference;
  return {
    where,
    message: redaction.text(message),
    ...(expected !== undefined && { expected: payloadToWire(redaction.data(expected), "plain") }),
    ...(actual !== undefined && { actual: payloadToWire(redaction.data(actual), "plain") }),
    ...(differs !== undefined && { differs }),
    ...(step !== undefined && { step }),
    ...(node !== undefined && { node }),
    ...(attempt !== undefined && { attempt }),
    ...(place !== undefined && { place }),
  };
}

/** The entry of the command that differs; the last one if the journal has none of it. */
async function seqOf(store: Store, { run, head }: RunRecord, { where, step }: ReplayDifference): Promise<number> {
  const [, seq] = /^entry (\d+)/.exec(where) ?? [];
  if (seq !== undefined) return Number(seq);
  if (step !== undefined) {
    const found = await store.findCheckpoint(run, step, false);
    if (found?.step === step) return found.seq;
  }
  for (let after = 0; after < head;) {
    const page = await store.readJournal(run, after, PAGE);
    const entry = page.find(({ command }) => command !== "" && (command === where || where.startsWith(`${command} `)));
    if (entry !== undefined) return entry.seq;
    if (page.length === 0) break;
    after = page.at(-1)!.seq;
  }
  return head;
}

async function entriesAround(
  store: Store,
  { run, createdAt }: RunRecord,
  seq: number,
  view: View,
): Promise<VerdictBody["around"]> {
  const from = Math.max(0, seq - 1 - AROUND);
  const reader = new TimelineReader(createdAt);
  const before = await store.readJournal(run, Math.max(0, from - PAGE), Math.min(PAGE, from));
  for (const entry of before) lineOf(reader, entry, view);
  return (await store.readJournal(run, from, 2 * AROUND + 1)).map((entry) => lineOf(reader, entry, view));
}

const SOURCE_LINES = 6;
const MAX_SOURCE = 2_000_000;

/** Undefined: this process cannot read the file. */
async function sourceAround(place: string | undefined): Promise<VerdictBody["source"]> {
  const [, file, text] = /^(.*?):(\d+)(?::\d+)?$/.exec(place ?? "") ?? [];
  if (file === undefined) return undefined;
  try {
    const path = file.startsWith("file://") ? fileURLToPath(file) : file;
    const content = await readFile(path, "utf8");
    if (content.length > MAX_SOURCE) return undefined;
    const lines = content.split("\n");
    const line = Number(text);
    const first = Math.max(1, line - SOURCE_LINES);
    return { file: path, first, lines: lines.slice(first - 1, line + SOURCE_LINES), line };
  } catch {
    return undefined;
  }
}
