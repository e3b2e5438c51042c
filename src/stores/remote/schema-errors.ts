// Schema errors: for databases whose schema is older or newer than this version's.

import { RepriseError } from "../../base/index.ts";

/** `found`: 0 when the database has no tables of Reprise. */
export function olderSchema(location: string, found: number, needed: number): RepriseError {
  const message =
    found === 0
      ? `${location} has no tables of Reprise yet. Run \`reprise migrate\`. An engine that opens the store also creates them.`
      : `${location} has schema ${found}; this version of Reprise needs schema ${needed}. Run \`reprise migrate\`. An engine that opens the store also migrates it.`;
  return new RepriseError("STORE_OLDER_SCHEMA", message, { details: { found, needed } });
}

export function newerSchema(location: string, found: number, known: number): RepriseError {
  return new RepriseError(
    "STORE_NEWER_SCHEMA",
    `${location} has schema ${found}; this version of Reprise knows schemas up to ${known}. Nothing was changed. Upgrade Reprise.`,
    { details: { found, known } },
  );
}
