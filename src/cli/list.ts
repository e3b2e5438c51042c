// reprise list: the runs of a store, newest first.

import { formatMs } from "../base/index.ts";
import type { RunFilter, RunRecord } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { reading } from "./open-store.ts";
import { EXIT, paint, print, printJson, remark } from "./output.ts";
import { checkStatuses } from "./pick-runs.ts";
import { paintStatus, runJson } from "./shown-run.ts";
import { clip, plain } from "./text.ts";

export interface ListOptions extends GlobalOptions {
  readonly status?: readonly string[];
  readonly definition?: string;
  readonly tag?: string;
  readonly limit: number;
}

const PAGE = 200;

export async function list(options: ListOptions): Promise<number> {
  const statuses = checkStatuses(options.status);
  const filter = {
    ...(statuses && { statuses }),
    ...(options.definition !== undefined && { definition: options.definition }),
    ...(options.tag !== undefined && { tag: options.tag }),
  };
  return reading(options.store, async (store) => {
    const header = ["RUN", "DEFINITION", "STATUS", "ENTRIES", "STARTED", "TOOK"];
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
      else if (page.length > 0) await printTable(shown === 0 ? header : undefined, page, now);
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
  if (!json && shown === 0) remark("No runs match.");
  if (!json && more) remark(`… and older ones: raise --limit (now ${shown}).`);
  return EXIT.ok;
}

async function printTable(
  header: readonly string[] | undefined,
  page: readonly RunRecord[],
  now: number,
): Promise<void> {
  const idWidth = Math.min(48, Math.max(12, ...page.map(({ id }) => id.length)));
  const nameWidth = Math.min(32, Math.max(10, ...page.map(({ definition }) => definition.length)));
  const widths = [idWidth, nameWidth, 21, 7, 14, 10];
  const row = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 3 ? cell.padStart(widths[3]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  if (header !== undefined) await print(paint("dim", row(header)));
  for (const { id, definition, status, head, createdAt, endedAt } of page) {
    const cells = [
      clip(plain(id), idWidth),
      clip(plain(definition), nameWidth),
      status.padEnd(widths[2]!),
      String(head),
      `${formatMs(Math.max(0, now - createdAt))} ago`,
      endedAt === undefined ? "" : formatMs(endedAt - createdAt),
    ];
    await print(row(cells).replace(cells[2]!, () => paintStatus(paint, status, cells[2]!)));
  }
}
