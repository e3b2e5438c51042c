// Evidence: forks that this site has found, as texts that its log hands on (meet-fork.M2).

import { canonicalJson } from "../../base/index.ts";
import type { Home } from "../home/home.ts";

/** The open forks whose evidence is complete: two branches with their proofs. */
export function evidenceToLog(home: Home): readonly string[] {
  return home
    .conflicts({ kind: "fork", state: "open" })
    .filter(({ evidence }) => typeof evidence === "object" && evidence !== null && "branches" in evidence)
    .map(({ evidence }) => canonicalJson(evidence));
}
