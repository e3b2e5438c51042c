// Confirm: asks for confirmation before a change that cannot be undone.

import { createInterface } from "node:readline/promises";
import { RepriseError } from "../base/index.ts";
import { EXIT } from "./exit-codes.ts";

/** Returns false if the user answers no. Without a terminal, `--yes` is required. */
export async function confirm(
  question: string,
  yes: boolean | undefined,
  alternative = ", or --dry-run to change nothing",
): Promise<boolean> {
  if (yes === true) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new RepriseError(
      "USAGE",
      `${question} This is not a terminal, so reprise cannot ask. Add --yes${alternative}.`,
    );
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
