// reprise list: prints the runs of a store, newest first.

import { formatMs, RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { RunFilter, RunRecord } from "../kernel/index.ts";
import { CommandError } from "./command-error.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { hasMirror, mirrorNames, mirrorUrl } from "./mirrors.ts";
import { shellWord } from "./next-command.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { checkStatuses } from "./select-runs.ts";
import { paintStatus, runJson } from "./run-format.ts";
import { Table, type Cell } from "./table.ts";

export interface ListOptions extends GlobalOptions {
  readonly status?: readonly string[];
  readonly definition?: string;
  readonly tag?: readonly string[];
  readonly kind?: RunRecord["kind"];
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly endedAfter?: string;
  readonly endedBefore?: string;
  readonly errorCode?: string;
  readonly idContains?: string;
  readonly parent?: string;
  readonly limit: number;
}

const PAGE = 200;

/** `mirror`: the name of a mirror, also with a `/` behind it. */
export async function list(mirror: string | undefined, given: ListOptions): Promise<number> {
  const options = mirror === undefined ? given : { ...given, store: urlOfMirror(mirror, given) };
  const statuses = checkStatuses(options.status);
  const { definition, tag: tags, kind, errorCode, idContains, parent } = options;
  return withStoreToRead(options.store, async (store) => {
    let table: RunTable | undefined;
    const now = store.now();
    const filter = {
      ...(statuses && { statuses }),
      ...(definition !== undefined && { definition }),
      ...(tags !== undefined && { tags }),
      ...(kind !== undefined && { kind }),
      ...(errorCode !== undefined && { errorCode }),
      ...(idContains !== undefined && { idContains }),
      ...(parent !== undefined && { parent }),
      ...timesOf(options, now),
    };
    if (parent !== undefined) await getRun(store, parent);
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

function urlOfMirror(given: string, options: ListOptions): string {
  const name = given.replace(/\/$/, "");
  if (hasMirror(options, name)) return mirrorUrl(options, name);
  const names = mirrorNames(options);
  throw new CommandError(
    "BAD_OPTIONS",
    `There is no mirror ${JSON.stringify(name)} in ${homeOf(options)}.${names.length === 0 ? "" : ` There are: ${names.join(", ")}.`} To show one run, use \`reprise show\`.`,
    `reprise pull <store URL> --as ${shellWord(name)}`,
  );
}

const TIMES = [
  ["createdAfter", "--created-after"],
  ["createdBefore", "--created-before"],
  ["endedAfter", "--ended-after"],
  ["endedBefore", "--ended-before"],
] as const;

function timesOf(options: ListOptions, now: EpochMs): Partial<Record<(typeof TIMES)[number][0], EpochMs>> {
  return Object.fromEntries(
    TIMES.flatMap(([name, option]) => {
      const text = options[name];
      return text === undefined ? [] : [[name, parseTime(text, option, now)]];
    }),
  );
}

/** A date, or an age: that long before now. A date without a zone is in UTC, as every time that `--json` prints. */
function parseTime(text: string, option: string, now: EpochMs): EpochMs {
  if (AGE.test(text)) return Math.max(0, now - toMs(text as Duration, option));
  const at = new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text).getTime();
  if (/^\d{4}-/.test(text) && !Number.isNaN(at)) return at;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${option}: ${JSON.stringify(text)} is not a time. Write a date such as 2026-11-17 or 2026-11-17T03:00 (UTC), or an age such as 30m, 2h or "7 days".`,
  );
}

const AGE = /^[\d.]+ ?[a-z]+$/;

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
