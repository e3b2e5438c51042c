// Asking before something that cannot be taken back.

import { createInterface } from "node:readline/promises";
import { RepriseError } from "../base/index.ts";
import { EXIT } from "./exit-codes.ts";

/** False when a person says no. Where nobody can be asked, `--yes` must have been said. */
export async function confirm(
  question: string,
  yes: boolean | undefined,
  otherwise = ", or --dry-run to only look",
): Promise<boolean> {
  if (yes === true) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new RepriseError("USAGE", `${question} Nobody can be asked here: say --yes${otherwise}.`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  lines.on("SIGINT", () => {
    process.stderr.write("\n");
    process.exit(EXIT.interrupted);
  });
  try {
    const answer = await lines.question(`${question} [y/N] `);
    return /^\s*y(?:es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}
