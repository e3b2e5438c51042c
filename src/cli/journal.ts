// reprise journal: prints the entries of a run, one per line.

import { decode, formatMs } from "../base/index.ts";
import type { Entry, StepCommittedData } from "../kernel/index.ts";
import { readSharedAsWritten } from "../workflow/index.ts";
import { tallyOf, tallyText } from "../explain/index.ts";
import { getRun } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { withRedactedStore, type InspectOptions } from "./redacted-store.ts";
import { entryJson } from "./run-format.ts";
import { plain, showValue } from "./text.ts";

export interface JournalOptions extends InspectOptions {
  readonly after: number;
  /** File to save for `expectReplay`. */
  readonly save?: string;
}

const PAGE = 500;
const KEY_SHOWN = 15;
const TYPE_WIDTH = 22;
const COMMAND_WIDTH = 16;
/** For graphs: `Node(12.0)#0/Operation(0)`. */
const NODE_COMMAND_WIDTH = 26;
const NARROW = 100;

export async function journal(id: string, options: JournalOptions): Promise<number> {
  if (options.save !== undefined) return (await import("./save-journal.ts")).saveJournal(id, options, options.save);
  return withRedactedStore(options, async (store) => {
    const { run, kind, createdAt } = await getRun(store, id, options.generation);
    const commandWidth = kind === "graph" && lineWidth() > NARROW ? NODE_COMMAND_WIDTH : COMMAND_WIDTH;
    const [first] = kind === "workflow" && options.after === 0 ? await store.readJournal(run, 0, 1) : [];
    const shared = await readSharedAsWritten(store, first);
    const startedAt = shared[0]?.entries[0]?.at ?? createdAt;
    for (const { run: by, entries } of shared) {
      if (!options.json) await print(paint("dim", `shared with ${plain(by)}`));
      for (const entry of entries)
        await (options.json
          ? printJson({ ...entryJson(entry), run: by })
          : print(entryLine(entry, startedAt, commandWidth)));
    }
    if (shared.length > 0 && !options.json) await print(paint("dim", `entries of ${plain(id)}`));
    for (let after = options.after; ;) {
      const page = await store.readJournal(run, after, PAGE);
      for (const entry of page)
        await (options.json ? printJson(entryJson(entry)) : print(entryLine(entry, startedAt, commandWidth)));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return EXIT.ok;
      after = last.seq;
    }
  });
}

function entryLine(entry: Entry, startedAt: number, commandWidth: number): string {
  const { seq, type, command, data, at } = entry;
  const place = `${String(seq).padStart(5)} ${`+${formatMs(at - startedAt)}`.padStart(11)}`;
  const what = `${type.padEnd(TYPE_WIDTH)} ${command.padEnd(commandWidth)}`;
  const room = process.stdout.isTTY ? Math.max(20, lineWidth() - place.length - what.length - 4) : undefined;
  // A terminal has no room for it.
  const facts = process.stdout.isTTY && lineWidth() <= NARROW ? "" : factsText(entry);
  return `${paint("dim", place)}  ${what} ${showValue(readable(type, decode(data)), room && room - facts.length)}${paint("dim", facts)}`;
}

/** `  execution 2 on shop-1, 12 ms`, for an entry that ends a call of user code. */
function factsText({ execution, worker, tookMs }: Entry): string {
  if (tookMs === undefined || execution === undefined) return "";
  return `  execution ${execution} on ${plain(worker ?? "?")}, ${formatMs(tookMs)}`;
}

/** Puts the most useful fields first, because lines are clipped at their end. */
function readable(type: Entry["type"], data: unknown): unknown {
  if (type === "StepCommitted") return shortStep(data as StepCommittedData);
  const { index, operationName, ...others } = (data ?? {}) as Readonly<Record<string, unknown>>;
  if (operationName === undefined) return data;
  return { operationName, ...others, index };
}

/** Without paths and with a short key; `--json` has them in full. */
function shortStep({ step, label, delta, frontier, waiting, key }: StepCommittedData): object {
  return {
    step,
    ...(label !== undefined && { label }),
    delta,
    frontier: tallyOf(frontier).map(tallyText),
    ...(waiting && {
      waiting: waiting.map(({ node, arrived }) => ({ node, arrived: arrived.map((one) => one.node) })),
    }),
    key: `${key.slice(0, KEY_SHOWN)}…`,
  };
}
