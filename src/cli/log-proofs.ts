// Log proofs: the records of a site's log in its bundles, and their check.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { BundleReport, VerifyingKey } from "../receipts/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";

/** The report of a section after the records of its log were checked. */
export async function withLogProof(report: BundleReport, keys: readonly VerifyingKey[]): Promise<BundleReport> {
  if (report.log.length === 0) return report;
  const { checkLogProof } = await import("../federation/index.ts");
  return checkLogProof(report, keys);
}

/** Finds the lines that prove a run of this site; undefined: the site has no log. `keys`: of the run record and of the statement. */
export async function openLogProofs(
  options: GlobalOptions,
): Promise<({ linesOf(keys: readonly string[]): readonly string[] } & Disposable) | undefined> {
  const dir = homeOf(options);
  if (!existsSync(join(dir, "federation.db"))) return undefined;
  const { openHome, ownLogLines } = await import("../federation/index.ts");
  const home = openHome(dir);
  return { linesOf: (keys) => ownLogLines(home, keys), [Symbol.dispose]: () => home.close() };
}
