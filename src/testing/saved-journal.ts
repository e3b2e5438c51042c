// Saved journals: journals of real runs in files, replayed against newer code.

import { readFile, writeFile } from "node:fs/promises";
import { encode, RepriseError, systemTimers } from "../base/index.ts";
import { registryOf, type GenerationOptions, type Run } from "../engine/index.ts";
import {
  decodeData,
  CHAIN_START,
  chainAfter,
  findJournalFault,
  markOf,
  type AnyTask,
  type Definition,
  type Entry,
  type EntryType,
} from "../kernel/index.ts";
import { replayJournal } from "../workflow/index.ts";

/** The journal of one run, as stored in a file. */
export interface SavedJournal {
  readonly format: "reprise/journal/v1";
  readonly definition: string;
  readonly id: string;
  readonly generation: number;
  /** The hash chain after the last entry. */
  readonly chain: string;
  readonly entries: readonly SavedEntry[];
}

/** An entry of a saved journal. */
export interface SavedEntry {
  readonly seq: number;
  readonly type: EntryType;
  readonly command: string;
  /** Canonical text, byte for byte. */
  readonly data: string;
  readonly at: number;
  /** The duration of the call that this entry completes. */
  readonly tookMs?: number;
}

const FORMAT = "reprise/journal/v1";

/**
 * Returns a run's journal in the format of `saveJournal`.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { createTestEngine, exportJournal } from "reprise/testing";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createTestEngine({ definitions: [hello] });
 * const run = await engine.start(hello, "Ada");
 * await run.result();
 * console.log((await exportJournal(run)).entries.length);
 * ```
 */
export async function exportJournal(
  run: Pick<Run<any>, "id" | "info" | "journal">,
  options: GenerationOptions = {},
): Promise<SavedJournal> {
  const { id, definition, generation: newest } = await run.info();
  const { generation = newest } = options;
  const entries: SavedEntry[] = [];
  for await (const { seq, type, command = "", data, at, tookMs } of run.journal({ generation })) {
    const timed = tookMs === undefined ? undefined : { tookMs };
    entries.push({ seq, type, command, data: encode(data), at: at.getTime(), ...timed });
  }
  return { format: FORMAT, definition, id, generation, chain: chainOf(entries), entries };
}

/**
 * Writes a run's journal to a file for `expectReplay`.
 *
 * @example
 * ```ts
 * import type { Run } from "reprise";
 * import { saveJournal } from "reprise/testing";
 * export const keep = (run: Run<unknown>) => saveJournal(run, "golden/trial-1.json");
 * ```
 */
export async function saveJournal(
  run: Pick<Run<any>, "id" | "info" | "journal">,
  file: string,
  options: GenerationOptions = {},
): Promise<void> {
  await writeFile(file, `${JSON.stringify(await exportJournal(run, options), undefined, 1)}\n`);
}

/**
 * Replays a saved journal against the current code, and throws an error at the first difference.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { expectReplay } from "reprise/testing";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * export const test = () => expectReplay("golden/hello-1.json", { definitions: [hello] });
 * ```
 */
export async function expectReplay(
  file: string,
  options: { definitions: readonly (Definition | AnyTask)[] },
): Promise<void> {
  const registry = registryOf(options.definitions);
  const saved = parseSaved(await readFile(file, "utf8"), file);
  const entries = withMarks(saved.entries);
  const body = registry.getWorkflow(saved.definition, versionIn(entries));
  const fault = findJournalFault(entries, { head: entries.length, chain: saved.chain });
  if (fault !== undefined) throw damaged(file, fault.problem);
  const verdict = await replayJournal(body, {
    identity: { id: saved.id, generation: saved.generation },
    entries,
    chain: saved.chain,
    host: {
      log: () => {},
      acceptTask: (task, input) => registry.acceptTask(task, input),
      hasTask: (task) => registry.findTask(task.name) !== undefined,
      acceptChild: (definition, input) => registry.acceptChild(definition, input),
      acceptNext: (name, version, input) => registry.acceptNext(name, version, input),
    },
    timers: systemTimers,
  });
  if (verdict.status === "same") return;
  const { status: _, where, message, ...more } = verdict;
  throw new RepriseError(
    body.replay === undefined ? "DETERMINISM_VIOLATION" : "REPLAY_MISMATCH",
    `${file} does not replay with the current code, at ${where}: ${message}`,
    { details: { file, where, ...more } },
  );
}

function parseSaved(text: string, file: string): SavedJournal {
  let saved: Partial<SavedJournal> | null;
  try {
    saved = JSON.parse(text) as Partial<SavedJournal> | null;
  } catch (error) {
    throw damaged(file, "it is not JSON", error);
  }
  if (saved?.format !== FORMAT) throw damaged(file, `its format is ${String(saved?.format)}, expected ${FORMAT}`);
  const { definition, id, chain, entries } = saved;
  const isWhole = typeof definition === "string" && typeof id === "string" && typeof chain === "string";
  if (!isWhole || !Array.isArray(entries)) throw damaged(file, "a field is missing");
  return saved as SavedJournal;
}

function damaged(file: string, problem: string, cause?: unknown): RepriseError {
  return new RepriseError(
    "BAD_PAYLOAD",
    `${file} is not a journal written by saveJournal: ${problem}. Save it again.`,
    {
      ...(cause !== undefined && { cause }),
      details: { file },
    },
  );
}

function versionIn([first]: readonly Entry[]): number | undefined {
  return first === undefined ? undefined : decodeData("RunStarted", first.data).version;
}

function chainOf(entries: readonly SavedEntry[]): string {
  return entries.reduce((chain, { type, command, data }) => chainAfter(chain, type, command, data), CHAIN_START);
}

function withMarks(entries: readonly SavedEntry[]): readonly Entry[] {
  let chain = CHAIN_START;
  return entries.map((entry) => {
    chain = chainAfter(chain, entry.type, entry.command, entry.data);
    return { ...entry, mark: markOf(chain) };
  });
}
