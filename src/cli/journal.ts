// reprise journal: a run's entries, one per line.

import { writeFile } from "node:fs/promises";
import { decode, formatMs, RepriseError } from "../base/index.ts";
import { listedInfoOf } from "../engine/index.ts";
import { journalEntryOf, type Entry, type RunRecord } from "../kernel/index.ts";
import { exportJournal } from "../testing/index.ts";
import { tallyOf, tallyText, type StepData } from "./graph-run.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { looking, type LookOptions } from "./shown-store.ts";
import { entryJson } from "./shown-run.ts";
import { countOf, plain, showValue } from "./text.ts";

export interface JournalOptions extends LookOptions {
  readonly after: number;
  /** A file for `expectReplay`. */
  readonly save?: string;
}

const PAGE = 500;
const KEY_SHOWN = 15;
const TYPE_WIDTH = 22;
const COMMAND_WIDTH = 16;
/** Of a graph: `Node(12.0)#0/Operation(0)`. */
const NODE_COMMAND_WIDTH = 26;
const NARROW = 100;

export async function journal(id: string, options: JournalOptions): Promise<number> {
  if (options.save !== undefined) return saveGolden(id, options, options.save);
  return looking(options, async (store) => {
    const { run, kind, createdAt } = await getRun(store, id, options.generation);
    const commandWidth = kind === "graph" && lineWidth() > NARROW ? NODE_COMMAND_WIDTH : COMMAND_WIDTH;
    for (let after = options.after; ;) {
      const page = await store.readJournal(run, after, PAGE);
      for (const entry of page)
        await (options.json ? printJson(entryJson(entry)) : print(entryLine(entry, createdAt, commandWidth)));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return EXIT.ok;
      after = last.seq;
    }
  });
}

/** Byte for byte, secrets included: what is replayed must be what was recorded. */
async function saveGolden(id: string, options: JournalOptions, file: string): Promise<number> {
  return reading(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const { generation } = record;
    const saved = await exportJournal(handleOf(record, await store.readJournal(record.run, 0)), { generation });
    await writeNew(file, `${JSON.stringify(saved, undefined, 1)}\n`);
    const entries = saved.entries.length;
    await (options.json
      ? printJson({ id, generation, file, entries, digest: `sha256:${saved.chain}` })
      : print(`${plain(id)}: ${countOf(entries, "entry", "entries")} in ${plain(file)}, for expectReplay.`));
    return EXIT.ok;
  });
}

/** As much of a run's handle as is needed without its code. */
function handleOf(record: RunRecord, entries: readonly Entry[]): Parameters<typeof exportJournal>[0] {
  return {
    id: record.id,
    info: async () => listedInfoOf(record),
    async *journal() {
      yield* entries.map(journalEntryOf);
    },
  };
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "EEXIST" ? "it is there already; name another file, or remove it" : message;
    throw new RepriseError("BAD_OPTIONS", `--save: ${file} cannot be written: ${why}.`, { cause: error });
  }
}

function entryLine({ seq, type, command, data, at }: Entry, startedAt: number, commandWidth: number): string {
  const place = `${String(seq).padStart(5)} ${`+${formatMs(at - startedAt)}`.padStart(11)}`;
  const what = `${type.padEnd(TYPE_WIDTH)} ${command.padEnd(commandWidth)}`;
  const room = process.stdout.isTTY ? Math.max(20, lineWidth() - place.length - what.length - 4) : undefined;
  return `${paint("dim", place)}  ${what} ${showValue(readable(type, decode(data)), room)}`;
}

/** What says most comes first: lines are cut at their end. */
function readable(type: Entry["type"], data: unknown): unknown {
  if (type === "StepCommitted") return shortStep(data);
  const { index, operationName, ...others } = (data ?? {}) as Readonly<Record<string, unknown>>;
  if (operationName === undefined) return data;
  return { operationName, ...others, index };
}

/** Paths and whole keys are for programs, which read `--json`. */
function shortStep(data: unknown): object {
  const { step, label, delta, frontier, waiting, key } = data as StepData;
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
