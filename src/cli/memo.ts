// reprise memo: lists and clears the remembered results of pure steps.

import { decode, RepriseError } from "../base/index.ts";
import { readMemoText, type MemoGroup, type MemoRecord, type Store } from "../kernel/index.ts";
import { confirm } from "./confirm.ts";
import { EXIT } from "./exit-codes.ts";
import { withStoreOption } from "./next-command.ts";
import { withStore, withStoreToRead } from "./open-store.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { redacted } from "./payload-module.ts";
import type { InspectOptions } from "./redacted-store.ts";
import type { GlobalOptions } from "./global-options.ts";
import { jsonOf } from "./run-format.ts";
import { plain, pluralize, showValue } from "./text.ts";

export interface MemoListOptions extends InspectOptions {
  readonly off?: boolean;
  readonly limit: number;
}

export interface MemoClearOptions extends GlobalOptions {
  readonly all?: boolean;
  readonly yes?: boolean;
}

/** Rows per read. */
const PAGE = 100;

/** The keys of the memo, in their order. */
export async function* memoGroups(store: Store, off: boolean): AsyncGenerator<MemoGroup> {
  for (let after: string | undefined; ;) {
    const page = await store.listMemos({ limit: PAGE, off, ...(after !== undefined && { after }) });
    yield* page.groups;
    if (page.next === undefined) return;
    after = page.next;
  }
}

export async function listMemo(options: MemoListOptions): Promise<number> {
  const { limit, off = false, showSecrets = false } = options;
  return withStoreToRead(options.store, async (store) => {
    let shown = 0;
    for await (const group of memoGroups(store, off)) {
      if (shown === limit) {
        if (!options.json) remark(`… more keys exist; show them with a --limit above ${limit}.`);
        break;
      }
      shown += 1;
      if (options.json) await printJson(memoJson(group, showSecrets));
      else await print(memoLines(group, showSecrets).join("\n"));
    }
    if (!options.json && shown === 0)
      remark(off ? "No pure step has different or damaged results." : "No result is remembered.");
    return EXIT.ok;
  });
}

export async function clearMemo(keys: readonly string[], options: MemoClearOptions): Promise<number> {
  if ((keys.length === 0) !== (options.all === true))
    throw new RepriseError(
      "USAGE",
      "Name the keys to clear, as `reprise memo list` shows them, or pass --all to clear all of them.",
    );
  const wrong = keys.find((key) => !/^[0-9a-f]{64}$/.test(key));
  if (wrong !== undefined)
    throw new RepriseError(
      "USAGE",
      `Expected a key of 64 hex digits, as \`reprise memo list\` shows it, got ${plain(wrong)}.`,
    );
  return withStore(options.store, async (store) => {
    const what = keys.length === 0 ? "all remembered results" : pluralize(keys.length, "key", "keys");
    if (!(await confirm(`Clear ${what}? Pure steps are then executed again.`, options.yes, ""))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const rows = await store.clearMemos(keys.length === 0 ? "all" : keys);
    if (options.json) await printJson({ rows });
    else await print(`${paint("green", "cleared")} ${pluralize(rows, "result", "results")}`);
    return keys.length > 0 && rows === 0 ? EXIT.problem : EXIT.ok;
  });
}

/** The name of the step, from the entry that the row names. */
export function stepOf({ entry }: MemoRecord): string {
  try {
    const { taskType, operationName } = decode(entry.data) as { taskType?: string; operationName?: string };
    return taskType ?? operationName ?? entry.command;
  } catch {
    return entry.command;
  }
}

function resultOf({ value }: MemoRecord, showSecrets: boolean): { readonly result: unknown } | undefined {
  const read = readMemoText(value);
  if (read === undefined) return undefined;
  const result = read.result === undefined ? undefined : decode(read.result);
  return { result: showSecrets ? result : redacted(result) };
}

function memoJson({ memo, status, rows }: MemoGroup, showSecrets: boolean): object {
  return {
    key: memo,
    status,
    results: rows.map((row) => ({
      runId: row.runId,
      definition: row.definition,
      seq: row.seq,
      step: stepOf(row),
      runtime: runtimeOf(row.by),
      result: jsonOf(resultOf(row, showSecrets)?.result),
    })),
  };
}

function runtimeOf(by: string): unknown {
  try {
    return JSON.parse(by);
  } catch {
    return by;
  }
}

const RESULT_WIDTH = 50;

function memoLines({ memo, status, rows }: MemoGroup, showSecrets: boolean): string[] {
  const [first] = rows;
  const name = first === undefined ? "a step of a deleted run" : plain(stepOf(first));
  const state = status === "known" ? "" : `  ${paint("yellow", `${status}, not reused`)}`;
  const results = rows.map((row) => {
    const found = resultOf(row, showSecrets);
    const value = found === undefined ? "damaged" : showValue(found.result, RESULT_WIDTH);
    return `  ${plain(row.runId)} #${row.seq} → ${value}`;
  });
  const next = `  ${paint("dim", "next:")} ${withStoreOption(`reprise memo clear ${memo}`)}`;
  return [
    `${paint("bold", name)}${state}`,
    `  ${paint("dim", memo)}`,
    ...results,
    ...(status === "known" ? [] : [next]),
  ];
}
