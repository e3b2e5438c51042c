// Schema errors: for databases whose schema is older or newer than this version's.

import { RepriseError } from "../../base/index.ts";

/** `found`: 0 when the database has no tables of Reprise. */
export function olderSchema(location: string, found: number, needed: number): RepriseError {
  const message =
    found === 0
      ? `${location} has no tables of Reprise yet, and this command does not create them. Run \`reprise migrate\`, or start an engine on it.`
      : `${location} has schema version ${found}; this version of Reprise needs ${needed}. Run \`reprise migrate\`, or start an engine on it.`;
  return new RepriseError("STORE_OLDER_SCHEMA", message, { details: { found, needed } });
}

export function newerSchema(location: string, found: number, known: number): RepriseError {
  return new RepriseError(
    "STORE_NEWER_SCHEMA",
    `${location} has schema version ${found}; this version of Reprise supports up to ${known}. Nothing was changed. Upgrade the \`reprise\` package.`,
    { details: { found, known } },
  );
}
