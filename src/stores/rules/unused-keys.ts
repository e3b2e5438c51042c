// Unused keys: deletes the start keys (singleton, debounce) whose run was deleted. A key without its run is free: this only frees space.

import type { Part, Rows, RowSession } from "../rows/rows.ts";

const WHAT = "Deleting unused start keys";
/** How many keys are read at once: some milliseconds. */
const WINDOW = 500;

const KIND = ["definition", "kind"] as const;
const KIND_ONLY = ["kind"] as const;
const KEY = ["key", "id"] as const;
const NUMBER = ["run"] as const;
type StartKey = Part<"start_keys", (typeof KEY)[number]>;

/** Of one definition, or of all. */
export async function deleteStartKeys(
  session: RowSession,
  only: string | undefined,
  pause: () => Promise<void> = async () => {},
): Promise<void> {
  const kinds = await session.read(WHAT, (rows) => kindsOf(rows, only));
  for (const [definition, kind] of kinds)
    for (let after: string | undefined = ""; after !== undefined;) {
      const page: KeyPage = await session.read(WHAT, (rows) => readKeys(rows, definition, kind, after));
      if (page.orphans.length > 0)
        await session.transact(WHAT, ({ rows }) => {
          // Only keys that still name the same run, which was not started again.
          for (const { key, id } of page.orphans)
            if (!hasRun(rows, id)) rows.remove("start_keys", [definition, kind, key], { id });
        });
      after = page.next;
      await pause();
    }
}

function kindsOf(rows: Rows, only: string | undefined): readonly (readonly [definition: string, kind: string])[] {
  return only === undefined
    ? rows.distinct("start_keys", [], KIND).map(({ definition, kind }) => [definition, kind] as const)
    : rows.distinct("start_keys", [only], KIND_ONLY).map(({ kind }) => [only, kind] as const);
}

interface KeyPage {
  readonly orphans: readonly StartKey[];
  /** Undefined: there are no more keys. */
  readonly next: string | undefined;
}

function readKeys(rows: Rows, definition: string, kind: string, after: string | undefined): KeyPage {
  const keys = rows.select("start_keys", [definition, kind], KEY, { after, limit: WINDOW });
  const orphans = keys.filter(({ id }) => !hasRun(rows, id)).map(({ key, id }) => ({ key, id }));
  return { orphans, next: keys.length < WINDOW ? undefined : keys.at(-1)?.key };
}

/** Whether a run has this id: the first generation is deleted with all others. */
function hasRun(rows: Rows, id: string): boolean {
  return rows.first("runs_by_id", [id, 0], NUMBER, { peek: true }) !== undefined;
}
