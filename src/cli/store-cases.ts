// Store cases: `reprise doctor --store-cases` runs the store conformance tests on the user's server or disk, in a
// temporary database.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RepriseError, systemClock, systemRandom } from "../base/index.ts";
import { isServer, sqlitePathOf } from "../stores/index.ts";
import { scratchBesideFile, scratchOnServer, type ScratchStore } from "../stores/maintenance/index.ts";
import { createStoreTest, storeCases } from "../testing/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson } from "./output.ts";
import { createProgress } from "./progress.ts";
import { onInterrupt } from "./signals.ts";
import { pluralize, plain } from "./text.ts";

interface FailedCase {
  readonly name: string;
  readonly error: string;
}

/** `which`: text that the names contain, or true for all. */
export async function doctorStoreCases(options: GlobalOptions, which: boolean | string): Promise<number> {
  const cases = selectCases(which);
  const scratch = await openScratch(options.store);
  const folder = mkdtempSync(join(tmpdir(), "reprise-cases-"));
  const cleanUp = async (): Promise<void> => {
    await scratch.drop();
    rmSync(folder, { recursive: true, force: true });
  };
  onInterrupt({ announce: () => {}, cleanUp });
  const failed: FailedCase[] = [];
  try {
    const progress = createProgress("running", "tests", () => systemClock.monotonic());
    for (const [done, one] of cases.entries()) {
      progress.at(done, cases.length);
      await scratch.clear();
      await one
        .run(createStoreTest({ source: scratch.source, userSql: scratch.notes, folder }))
        .catch((error: unknown) => failed.push({ name: one.name, error: String(error) }));
    }
    progress.end();
  } finally {
    await cleanUp();
  }
  if (options.json) await printJson({ passed: cases.length - failed.length, failed });
  else await printOutcome(scratch, cases.length, failed);
  return failed.length === 0 ? EXIT.ok : EXIT.problem;
}

function selectCases(which: boolean | string): typeof storeCases {
  const cases = typeof which === "string" ? storeCases.filter(({ name }) => name.includes(which)) : storeCases;
  if (cases.length > 0) return cases;
  throw new RepriseError(
    "USAGE",
    `--store-cases: no test name contains ${JSON.stringify(which)}. Run all tests: reprise doctor --store-cases.`,
  );
}

function openScratch(store: string): Promise<ScratchStore> | ScratchStore {
  return isServer(store) ? scratchOnServer(store, systemRandom) : scratchBesideFile(sqlitePathOf(store));
}

async function printOutcome({ kind }: ScratchStore, total: number, failed: readonly FailedCase[]): Promise<void> {
  if (failed.length === 0)
    return print(
      `${paint(["green", "bold"], "passed")}  ${pluralize(total, "store test", "store tests")} on this ${kind}`,
    );
  await print(paint(["red", "bold"], `${failed.length} of ${pluralize(total, "store test", "store tests")} failed`));
  for (const { name, error } of failed)
    await print(`  ${paint("red", "✖")} ${plain(name)}\n      ${plain(error.split("\n")[0] ?? "")}`);
}
