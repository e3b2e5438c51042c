// Save journal: `reprise journal --save` writes a run's journal to a file for `expectReplay`.

import { writeFile } from "node:fs/promises";
import { RepriseError } from "../base/index.ts";
import { listedInfoOf } from "../engine/index.ts";
import { journalEntryOf, type Entry, type RunRecord } from "../kernel/index.ts";
import { exportJournal } from "../testing/index.ts";
import { readSharedAsWritten, type SharedEntries } from "../workflow/index.ts";
import { EXIT } from "./exit-codes.ts";
import type { JournalOptions } from "./journal.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { print, printJson } from "./output.ts";
import { pluralize, plain } from "./text.ts";

/** Writes the journal unredacted: a replay needs the recorded bytes. */
export async function saveJournal(id: string, options: JournalOptions, file: string): Promise<number> {
  return withStoreToRead(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const { generation } = record;
    const own = await store.readJournal(record.run, 0);
    const shared = record.kind === "workflow" ? await readSharedAsWritten(store, own[0]) : [];
    const saved = await exportJournal(handleOf(record, shared, own), { generation });
    await writeNew(file, `${JSON.stringify(saved, undefined, 1)}\n`);
    const entries = saved.entries.length;
    await (options.json
      ? printJson({ id, generation, file, entries, digest: `sha256:${saved.chain}` })
      : print(`${plain(id)}: ${pluralize(entries, "entry", "entries")} in ${plain(file)}, for expectReplay.`));
    return EXIT.ok;
  });
}

/** The part of a run handle that `exportJournal` needs. */
function handleOf(
  record: RunRecord,
  shared: readonly SharedEntries[],
  own: readonly Entry[],
): Parameters<typeof exportJournal>[0] {
  return {
    id: record.id,
    info: async () => listedInfoOf(record),
    async *journal() {
      for (const { run, entries } of shared) for (const entry of entries) yield { ...journalEntryOf(entry), run };
      yield* own.map(journalEntryOf);
    },
  };
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "EEXIST" ? "it already exists. Name another file, or delete it" : message;
    throw new RepriseError("BAD_OPTIONS", `--save: ${file} cannot be written: ${why}.`, { cause: error });
  }
}
