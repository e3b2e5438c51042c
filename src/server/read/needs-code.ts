// Needs code: the refusal of what a server cannot do without the code of a run.

import { RepriseError, shellWord } from "../../base/index.ts";
import type { RunRecord } from "../../kernel/index.ts";

/** UNKNOWN_DEFINITION, with the command that does it where the code is. */
export function needsCode(
  { id, definition, version }: RunRecord,
  what: "query" | "replay" | "verify" | "migrate" | "draw",
): RepriseError {
  const command =
    what === "query"
      ? `reprise query ${shellWord(id)} '<name>' --file <file>`
      : what === "migrate"
        ? `reprise migrate ${shellWord(id)} <file>`
        : what === "draw"
          ? `reprise graph <file> --run ${shellWord(id)}`
          : `reprise ${what} ${shellWord(id)} <file>`;
  return new RepriseError(
    "UNKNOWN_DEFINITION",
    `This server does not have ${definition} version ${version}, so it cannot ${what} run ${id}. Run \`${command}\` where the code is, or start the server with it: \`reprise serve --code <file>\`.`,
    { details: { run: id, status: 409 } },
  );
}
