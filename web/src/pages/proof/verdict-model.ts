// Verdict model: what the page Proof shows of a verdict: tiles, and journal and code side by side. Pure.

import type { VerdictBody } from "../../../../src/contract/history.ts";
import type { JournalEntryBody } from "../../../../src/contract/run.ts";
import { count, duration, plural } from "../../format.ts";
import { preview } from "../../graph/preview.ts";

export interface Tile {
  readonly status: "completed" | "failed" | "stopped" | "queued";
  readonly title: string;
  readonly text: string;
}

const SHORT_HASH = 12;
export const shortHash = (hash: string): string => hash.replace(/^sha256:/, "").slice(0, SHORT_HASH);

export function tilesOf(verdict: VerdictBody, hasEnded: boolean): readonly Tile[] {
  const { entries, agreed, chain, gapFree, status, tookMs } = verdict;
  const end = hasEnded ? "the run has ended" : "the run has not ended";
  return [
    chain.intact
      ? {
          status: "completed",
          title: "Hash chain intact",
          text: `${plural(entries, "entry", "entries")}, ${shortHash(chain.head)}…`,
        }
      : { status: "failed", title: "Hash chain broken", text: "entries were changed after they were written" },
    gapFree
      ? { status: "completed", title: "No gap", text: `entries 1 to ${count(entries)}, ${end}` }
      : { status: "failed", title: "Entries are missing", text: `of ${plural(entries, "entry", "entries")}` },
    status === "same"
      ? { status: "completed", title: "Replay agrees", text: `${plural(agreed, "entry", "entries")} from this code` }
      : status === "different"
        ? {
            status: "failed",
            title: "Replay differs",
            text: `${count(agreed)} agree, entry ${count(agreed + 1)} does not`,
          }
        : { status: "queued", title: "Not replayed", text: "a damaged journal is no evidence" },
    { status: "completed", title: "Nothing called", text: `0 calls outside, 0 writes, ${duration(tookMs)}` },
  ];
}

export interface SideBySideRow {
  readonly kind: "same" | "different" | "unreached";
  readonly entry?: JournalEntryBody;
  /** What the code asks for, as far as the verdict knows it. */
  readonly code: string;
  readonly place: string;
}

/** Entries around the first difference. The code's side repeats what agrees. */
export function rowsOf(verdict: VerdictBody): readonly SideBySideRow[] {
  const [difference] = verdict.differences;
  const rows = verdict.around.map((entry): SideBySideRow => {
    if (entry.seq <= verdict.agreed) return { kind: "same", entry, code: askText(entry), place: "" };
    if (entry.seq === verdict.agreed + 1 && difference !== undefined)
      return { kind: "different", entry, code: difference.message, place: difference.place ?? "" };
    return { kind: "unreached", entry, code: "not reached", place: "" };
  });
  // The code asks for more than the journal has.
  if (difference !== undefined && !rows.some(({ kind }) => kind === "different"))
    rows.push({ kind: "different", code: difference.message, place: difference.place ?? "" });
  return rows;
}

/** `ctx.task(charge)` for the entry that answers it. */
export function askText({ type, command, line }: JournalEntryBody): string {
  const name = line.name === "" ? (command ?? "") : line.name;
  if (type === "RunStarted") return "start";
  if (/^(?:Task|Child)(?:Completed|Failed)/.test(type)) return `returns to ${name}`;
  if (type.startsWith("Task")) return `ctx.task(${name})`;
  if (type.startsWith("Child")) return `ctx.child(${name})`;
  if (type.startsWith("Operation")) return `ctx.run("${name}")`;
  if (type.startsWith("Timer")) return type === "TimerFired" ? "resumes" : "ctx.sleep(…)";
  if (type === "PromiseCreated") return `ctx.promise("${name}")`;
  if (/^(?:Run|Step)/.test(type)) return "agrees";
  return name === "" ? "agrees" : name;
}

/** What the journal and the code have at the first difference, as lines. */
export function sidesOf(verdict: VerdictBody): { readonly journal: string; readonly code: string } | undefined {
  const [difference] = verdict.differences;
  if (difference === undefined) return undefined;
  const side = (value: unknown): string => (value === undefined ? "nothing" : preview(value, 600));
  return { journal: side(difference.actual), code: side(difference.expected) };
}

export function foldText(verdict: VerdictBody): string {
  const first = verdict.around[0]?.seq ?? 1;
  if (first <= 1) return "";
  return first === 2 ? "entry 1 agrees" : `entries 1 to ${count(first - 1)} agree`;
}
