// What `replay` and `verify` share: a run's journal against the definitions of a file.

import { RepriseError } from "../base/index.ts";
import type { Run } from "../engine/index.ts";
import { findJournalFault, type RunRecord, type Store } from "../kernel/index.ts";
import type { Replay } from "../workflow/index.ts";
import { withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT, paint, print, printJson } from "./output.ts";
import { countOf, plain, showValue } from "./text.ts";

type Check = "replay" | "verify";

export interface CheckOptions extends GlobalOptions {
  readonly generation?: number;
}

export async function checkCode(check: Check, id: string, file: string, options: CheckOptions): Promise<number> {
  return reading(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const definitions = await loadDefinitions(file);
    if (check === "verify") await refuseDamage(store, record);
    const verdict = await withClient(store, definitions, (engine) => {
      const handle: Run<unknown> = engine.run(record.definition, id);
      return handle[check]({ generation: record.generation });
    });
    await (options.json
      ? printJson({ id, generation: record.generation, check, entries: record.head, ...verdictJson(verdict) })
      : printVerdict(check, id, record.head, verdict));
    return verdict.status === "same" ? EXIT.ok : EXIT.determinism;
  });
}

/** Damage is the operator's business, not the programmer's: told apart from a change of the code. */
async function refuseDamage(store: Store, record: RunRecord): Promise<void> {
  const { id } = record;
  const fault = findJournalFault(await store.readJournal(record.run, 0, record.head), record);
  if (fault === undefined) return;
  const what = fault.code === undefined ? "is damaged" : "cannot be read";
  throw new RepriseError(fault.code ?? "STORE_CORRUPT", `The journal of run ${id} ${what}: ${fault.problem}.`, {
    details: { run: id, seq: fault.seq },
  });
}

function verdictJson(verdict: Replay): Record<string, unknown> {
  if (verdict.status === "same") return { status: "same", digest: verdict.digest };
  const { where, message, expected, actual } = verdict;
  return { status: "mismatch", where, message, expected: expected ?? null, actual: actual ?? null };
}

async function printVerdict(check: Check, id: string, entries: number, verdict: Replay): Promise<void> {
  if (verdict.status === "same") {
    const what =
      check === "verify"
        ? "The journal is whole, and the code does what it says"
        : "The code does what the journal says";
    await print(
      `${paint(["green", "bold"], "same")}  ${plain(id)}: ${what} (${countOf(entries, "entry", "entries")}).`,
    );
    await print(paint("dim", verdict.digest));
    return;
  }
  await print(`${paint(["red", "bold"], "mismatch")}  ${plain(id)}: ${plain(verdict.message)}`);
  await print(`  ${paint("dim", "where:")}    ${plain(verdict.where)}`);
  await print(`  ${paint("dim", "expected:")} ${showValue(verdict.expected)}`);
  await print(`  ${paint("dim", "actual:")}   ${showValue(verdict.actual)}`);
  await print(
    `  ${paint("dim", "next:")}     make the code ask for what the journal has, keep both ways with ctx.patched(), or run the version that wrote it`,
  );
}
