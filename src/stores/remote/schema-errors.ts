// What is said of a database whose tables are not those of this version.

import { RepriseError } from "../../base/index.ts";

/** `found`: 0 where there is nothing of ours yet. */
export function olderSchema(location: string, found: number, needed: number): RepriseError {
  const message =
    found === 0
      ? `${location} has no tables of Reprise yet. \`reprise migrate\` makes them; so does any engine that opens it.`
      : `${location} has schema ${found}, this program needs ${needed}. \`reprise migrate\` brings it up to date; so does any engine that opens it.`;
  return new RepriseError("STORE_OLDER_SCHEMA", message, { details: { found, needed } });
}

export function newerSchema(location: string, found: number, known: number): RepriseError {
  return new RepriseError(
    "STORE_NEWER_SCHEMA",
    `${location} has schema ${found}, this program knows ${known} at most; nothing was changed. Upgrade this program.`,
    { details: { found, known } },
  );
}
