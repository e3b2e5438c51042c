// Prefetch names: the names that the claims of a list request. A few names are queried one by one, in one round trip; with many,
// the database first lists those that have work.

import type { DefinitionVersion, Write } from "../../kernel/index.ts";

/** More names than this are not queried one by one. */
const FEW = 16;

/** Undefined when there are many, or none. */
export function prefetchVersions(writes: readonly Write[]): readonly DefinitionVersion[] | undefined {
  const names = writes.flatMap((write) => (write.write === "claim-turns" ? write.definitions : []));
  return few(names);
}

/** Names of tasks and routes of nodes. */
export function prefetchNames(writes: readonly Write[]): readonly string[] | undefined {
  return few(writes.flatMap((write) => (write.write === "claim-items" ? write.names : [])));
}

function few<T>(names: readonly T[]): readonly T[] | undefined {
  return names.length > 0 && names.length <= FEW ? names : undefined;
}
