// reprise doctor --store-cases: every promise of a store, tried on the user's own server or disk, in a place made for it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RepriseError, systemClock, systemRandom } from "../base/index.ts";
import { isServer, sqlitePathOf } from "../stores/index.ts";
import { scratchBesideFile, scratchOnServer, type Scratch } from "../stores/care/index.ts";
import { createStoreTest, storeCases } from "../testing/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson } from "./output.ts";
import { progressOf } from "./progress.ts";
import { onInterrupt } from "./signals.ts";
import { countOf, plain } from "./text.ts";

interface Broken {
  readonly name: string;
  readonly error: string;
}

/** `which`: a part of their names, or true for all. */
export async function doctorStoreCases(options: GlobalOptions, which: boolean | string): Promise<number> {
  const cases = casesLike(which);
  const scratch = await openScratch(options.store);
  const folder = mkdtempSync(join(tmpdir(), "reprise-cases-"));
  const cleanUp = async (): Promise<void> => {
    await scratch.drop();
    rmSync(folder, { recursive: true, force: true });
  };
  onInterrupt({ say: () => {}, cleanUp });
  const broken: Broken[] = [];
  try {
    const progress = progressOf("trying", "promises", () => systemClock.monotonic());
    for (const [done, one] of cases.entries()) {
      progress.at(done, cases.length);
      await scratch.clear();
      await one
        .run(createStoreTest({ source: scratch.source, userSql: scratch.notes, folder }))
        .catch((error: unknown) => broken.push({ name: one.name, error: String(error) }));
    }
    progress.end();
  } finally {
    await cleanUp();
  }
  if (options.json) await printJson({ kept: cases.length - broken.length, broken });
  else await printOutcome(scratch, cases.length, broken);
  return broken.length === 0 ? EXIT.ok : EXIT.problem;
}

function casesLike(which: boolean | string): typeof storeCases {
  const cases = typeof which === "string" ? storeCases.filter(({ name }) => name.includes(which)) : storeCases;
  if (cases.length > 0) return cases;
  throw new RepriseError("USAGE", `--store-cases: no promise of a store has ${JSON.stringify(which)} in its name.`);
}

function openScratch(store: string): Promise<Scratch> | Scratch {
  return isServer(store) ? scratchOnServer(store, systemRandom) : scratchBesideFile(sqlitePathOf(store));
}

async function printOutcome({ kind }: Scratch, tried: number, broken: readonly Broken[]): Promise<void> {
  if (broken.length === 0)
    return print(
      `${paint(["green", "bold"], "kept")}  ${countOf(tried, "promise", "promises")} of a store, on this ${kind}`,
    );
  await print(paint(["red", "bold"], `${countOf(broken.length, "promise", "promises")} of ${tried} broken`));
  for (const { name, error } of broken)
    await print(`  ${paint("red", "✖")} ${plain(name)}\n      ${plain(error.split("\n")[0] ?? "")}`);
}
