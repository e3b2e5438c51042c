// Saved journals: journals of real runs in files, replayed against newer code.

import { readFile, writeFile } from "node:fs/promises";
import { encode, RepriseError } from "../base/index.ts";
import { JournalReplayer, registryOf, type GenerationOptions, type RecordedRun, type Run } from "../engine/index.ts";
import {
  CHAIN_START,
  chainAfter,
  findJournalFault,
  markOf,
  versionOfJournal,
  type AnyTask,
  type Definition,
  type Entry,
  type EntryType,
} from "../kernel/index.ts";
import { bundledEntries, bundleHistory, bundleText, checkBundle, isBundleText } from "../receipts/index.ts";
import { joinShared, readShared } from "../workflow/index.ts";

/** The journal of one run, as stored in a file. */
export interface SavedJournal {
  readonly format: "reprise/journal/v1";
  readonly definition: string;
  readonly id: string;
  readonly generation: number;
  /** The hash chain after the last entry. */
  readonly chain: string;
  readonly entries: readonly SavedEntry[];
  /** The entries that a fork shares with the runs it comes from, the oldest run first; absent: none. */
  readonly shared?: readonly { readonly run: string; readonly entries: readonly SavedEntry[] }[];
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
  const shared: { readonly run: string; readonly entries: SavedEntry[] }[] = [];
  for await (const { seq, run: by, type, command = "", data, at, tookMs } of run.journal({ generation })) {
    const timed = tookMs === undefined ? undefined : { tookMs };
    const entry = { seq, type, command, data: encode(data), at: at.getTime(), ...timed };
    if (by === undefined) entries.push(entry);
    else if (seq === 1) shared.push({ run: by, entries: [entry] });
    else shared.at(-1)?.entries.push(entry);
  }
  const saved = { format: FORMAT, definition, id, generation, chain: chainOf(entries), entries } as const;
  return shared.length === 0 ? saved : { ...saved, shared };
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
 * Replays a journal against the current code, and throws an error at the first difference. The journal is in a file of
 * `saveJournal`, or in a bundle of `reprise bundle`, whose runs are all replayed; `source` is the path of the file, or its text.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { expectReplay } from "reprise/testing";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * export const test = () => expectReplay("golden/hello-1.jsonl", { definitions: [hello] });
 * ```
 */
export async function expectReplay(
  source: string,
  options: { definitions: readonly (Definition | AnyTask)[] },
): Promise<void> {
  using replayer = new JournalReplayer(registryOf(options.definitions), "off");
  const isText = source.startsWith("{");
  const file = isText ? "The given text" : source;
  const text = isText ? source : await readFile(source, "utf8");
  if (isBundleText(text)) for await (const run of bundledRuns(text, file)) await replayOne(replayer, run, file);
  else await replayOne(replayer, savedRun(text, file), file);
}

/** The runs of a bundle, whose lines must fit each other; who signed them does not matter here. */
async function* bundledRuns(text: string, file: string): AsyncGenerator<RecordedRun> {
  const reports = await Array.fromAsync(checkBundle(bundleText(text), []));
  const history = bundleHistory(reports);
  for (const report of reports) {
    const { run, problem, chain, form } = report;
    if (problem !== undefined)
      throw new RepriseError("BUNDLE_DAMAGED", `${file}: ${problem.message}. Make the bundle again.`, {
        details: { file, ...(problem.line !== undefined && { line: problem.line }) },
      });
    if (chain === undefined)
      throw new RepriseError(
        "BAD_PAYLOAD",
        `${file} is a bundle of form ${form}, which has no payloads to replay. Make it with --full.`,
        { details: { file } },
      );
    const entries = await bundledEntries(report);
    const { entries: shared } = run.kind === "workflow" ? await readShared(history, entries[0]) : { entries: [] };
    const { id, generation, definition, version } = run;
    yield { id, generation, definition, version, entries, shared, chain };
  }
}

function savedRun(text: string, file: string): RecordedRun {
  const { id, generation, definition, chain, ...saved } = parseSaved(text, file);
  const entries = withMarks(saved.entries);
  const shared = joinShared((saved.shared ?? []).map((part) => ({ entries: withMarks(part.entries) })));
  return { id, generation, definition, version: versionOfJournal(entries), entries, shared, chain };
}

async function replayOne(replayer: JournalReplayer, run: RecordedRun, file: string): Promise<void> {
  const kind = replayer.kindOf(run);
  const fault = findJournalFault(run.entries, { head: run.entries.length, chain: run.chain });
  if (fault !== undefined) throw damaged(file, fault.problem);
  const verdict = await replayer.replay(run);
  if (verdict.status === "same") return;
  const { status: _, where, message, ...more } = verdict;
  throw new RepriseError(
    kind === "workflow" ? "DETERMINISM_VIOLATION" : "REPLAY_MISMATCH",
    `${file} does not replay with the current code, at ${where} of run ${run.id}: ${message}`,
    { details: { file, run: run.id, where, ...more } },
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
