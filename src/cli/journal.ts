// reprise journal: a run's entries, one per line.

import { decode, formatMs } from "../base/index.ts";
import type { Entry } from "../kernel/index.ts";
import { getRun } from "./open-store.ts";
import { EXIT, lineWidth, paint, print, printJson } from "./output.ts";
import { looking, type LookOptions } from "./shown-store.ts";
import { entryJson } from "./shown-run.ts";
import { showValue } from "./text.ts";

export interface JournalOptions extends LookOptions {
  readonly after: number;
}

const PAGE = 500;
const TYPE_WIDTH = 22;
const COMMAND_WIDTH = 16;

export async function journal(id: string, options: JournalOptions): Promise<number> {
  return looking(options, async (store) => {
    const { run, createdAt } = await getRun(store, id, options.generation);
    for (let after = options.after; ;) {
      const page = await store.readJournal(run, after, PAGE);
      for (const entry of page) await (options.json ? printJson(entryJson(entry)) : print(entryLine(entry, createdAt)));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return EXIT.ok;
      after = last.seq;
    }
  });
}

function entryLine({ seq, type, command, data, at }: Entry, startedAt: number): string {
  const place = `${String(seq).padStart(5)} ${`+${formatMs(at - startedAt)}`.padStart(11)}`;
  const what = `${type.padEnd(TYPE_WIDTH)} ${command.padEnd(COMMAND_WIDTH)}`;
  const room = process.stdout.isTTY ? Math.max(20, lineWidth() - place.length - what.length - 4) : undefined;
  return `${paint("dim", place)}  ${what} ${showValue(decode(data), room)}`;
}
