// reprise list: prints the runs of a store, newest first.

import { formatMs } from "../base/index.ts";
import type { RunFilter, RunRecord } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withStore } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { checkStatuses } from "./select-runs.ts";
import { paintStatus, runJson } from "./run-format.ts";
import { Table, type Cell } from "./table.ts";

export interface ListOptions extends GlobalOptions {
  readonly status?: readonly string[];
  readonly definition?: string;
  readonly tag?: string;
  readonly kind?: RunRecord["kind"];
  readonly limit: number;
}

const PAGE = 200;

export async function list(options: ListOptions): Promise<number> {
  const statuses = checkStatuses(options.status);
  const filter = {
    ...(statuses && { statuses }),
    ...(options.definition !== undefined && { definition: options.definition }),
    ...(options.tag !== undefined && { tag: options.tag }),
    ...(options.kind !== undefined && { kind: options.kind }),
  };
  return withStore(options.store, async (store) => {
    let table: RunTable | undefined;
    const now = store.now();
    let shown = 0;
    let before: number | undefined;
    for (let left = options.limit; left > 0;) {
      const limit = Math.min(PAGE, left);
      const page = await store.listRuns({
        ...filter,
        ...(before !== undefined && { before }),
        limit,
      } satisfies RunFilter);
      if (options.json) for (const record of page) await printJson(runJson(record));
      else if (page.length > 0) await print((table ??= new RunTable(page, now)).render(page).join("\n"));
      shown += page.length;
      left -= page.length;
      before = page.at(-1)?.run;
      if (page.length < limit) return finish(shown, false, options.json);
    }
    const more = before !== undefined && (await store.listRuns({ ...filter, before, limit: 1 })).length > 0;
    return finish(shown, more, options.json);
  });
}

function finish(shown: number, more: boolean, json: boolean): number {
  if (!json && shown === 0) remark("No matching runs.");
  if (!json && more) remark(`… more runs exist; show them with a --limit above ${shown}.`);
  return EXIT.ok;
}

/** A table of runs. It has a KIND column if not all runs are workflows. */
export class RunTable {
  readonly #table: Table;
  readonly #now: number;
  readonly #hasKind: boolean;

  /** `first`: the rows that decide the columns and their widths. */
  constructor(first: readonly RunRecord[], now: number) {
    this.#now = now;
    this.#hasKind = first.some(({ kind }) => kind !== "workflow");
    this.#table = new Table([
      { title: "RUN" },
      { title: "DEFINITION", minWidth: 10 },
      ...(this.#hasKind ? [{ title: "KIND", dropOrder: 2 }] : []),
      { title: "STATUS" },
      { title: "ENTRIES", right: true, dropOrder: 1 },
      { title: "STARTED", dropOrder: 4 },
      { title: "TOOK", dropOrder: 3 },
    ]);
  }

  render(records: readonly RunRecord[]): string[] {
    return this.#table.render(records.map((record) => this.#cells(record)));
  }

  #cells({ id, definition, kind, status, head, createdAt, endedAt }: RunRecord): Cell[] {
    return [
      id,
      definition,
      ...(this.#hasKind ? [kind] : []),
      { text: status, paint: (text) => paintStatus(paint, status, text) },
      String(head),
      `${formatMs(Math.max(0, this.#now - createdAt))} ago`,
      endedAt === undefined ? "" : formatMs(endedAt - createdAt),
    ];
  }
}
