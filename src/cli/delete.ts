// reprise delete: deletes ended runs, each with its family.

import { RepriseError } from "../base/index.ts";
import type { RunRecord } from "../kernel/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import { confirm } from "./confirm.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun, withStore } from "./open-store.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { pluralize, plain } from "./text.ts";
import { exitCodeOf, remarkSkipped } from "./unchanged.ts";

export interface DeleteOptions extends GlobalOptions {
  readonly yes?: boolean;
}

interface Deleted {
  readonly id: string;
  readonly runs: number;
}

/** A run that is refused is reported, and the others are deleted; the exit code then says so. */
export async function deleteRuns(given: readonly string[], options: DeleteOptions): Promise<number> {
  const ids = [...new Set(given)];
  return withStore(options.store, async (store) => {
    const records: RunRecord[] = [];
    for (const id of ids) records.push(await getRun(store, id));
    const what = ids.length === 1 ? `run ${ids[0]}` : pluralize(ids.length, "run", "runs");
    const question = `Delete ${what}, with children and journals?`;
    if (!(await confirm(question, options.yes, ""))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const deleted: Deleted[] = [];
    const skipped: { readonly id: string; readonly reason: string }[] = [];
    const definitions = [...new Set(records.map(({ definition }) => definition))].map((name) =>
      placeholderDefinition(name),
    );
    await withClient(store, definitions, async (client) => {
      for (const { id, definition } of records)
        try {
          deleted.push({ id, ...(await client.get(definition, id).delete()) });
        } catch (error) {
          if (!(error instanceof RepriseError && error.family === "usage")) throw error;
          skipped.push({ id, reason: error.message });
        }
    });
    if (options.json) await printJson({ deleted, skipped });
    else {
      for (const { id, runs } of deleted)
        await print(
          `${paint("green", "deleted")} ${paint("bold", plain(id))}${
            runs > 1 ? paint("dim", ` with ${pluralize(runs - 1, "other run", "other runs")}`) : ""
          }`,
        );
      for (const { id, reason } of skipped) remarkSkipped(id, reason);
    }
    return exitCodeOf(skipped.length);
  });
}
