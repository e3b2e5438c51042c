// @ts-nocheck
// Row statements: every statement of the rules, over the rows of a working set.
//
// row-statements.V1. A statement does what its SQL text in SQLite does: the same rows, in the same order, with the same names.
// row-statements.V2. A statement whose rows are not loaded throws a miss (working-set.W1) and prefetches what the rules read next.
// row-statements.V3. Rows are locked as `AccessMode` requires; a changed row is locked, or verified by the commit.

import type { Write } from "../../../kernel/index.ts";
import type { Statements } from "../../rules/statements.ts";
import { checkpointStatements } from "./checkpoints.ts";
import { flowStatements } from "./flows.ts";
import { queueLimitStatements } from "./queue-limits.ts";
import { messageStatements } from "./messages.ts";
import { itemStatements } from "./items.ts";
import { countStatements } from "./counts.ts";
import { runStatements } from "./runs.ts";
import { scheduleStatements } from "./schedules.ts";
import { startStatements } from "./starts.ts";
import { streamStatements } from "./streams.ts";
import { sweepStatements } from "./sweep.ts";
import { workerStatements } from "./workers.ts";
import { lockOf, type AccessMode, type StatementContext } from "./context.ts";
import type { WorkingSet } from "../working-set.ts";

export type { AccessMode } from "./context.ts";

export interface StatementHints {
  /** The list of writes that is applied. */
  readonly writes?: readonly Write[];
}

interface RowStatements {
  readonly context: StatementContext;
  readonly statements: Statements;
}

/** About two hundred statements are created once per working set, not once per transaction. */
const STATEMENTS = new WeakMap<WorkingSet, Partial<Record<AccessMode, RowStatements>>>();

/** Returns the same statements for each call with a set and a mode; the hints of the last call apply. */
export function rowStatements(ws: WorkingSet, mode: AccessMode, hints: StatementHints = {}): Statements {
  let modes = STATEMENTS.get(ws);
  if (modes === undefined) STATEMENTS.set(ws, (modes = {}));
  const { context, statements } = (modes[mode] ??= makeStatements(ws, mode));
  context.writes = hints.writes ?? [];
  return statements;
}

function makeStatements(ws: WorkingSet, mode: AccessMode): RowStatements {
  const context: StatementContext = { ws, mode, writes: [], lock: (table) => lockOf(mode, table) };
  const statements = {
    ...runStatements(context),
    ...startStatements(context),
    ...messageStatements(context),
    ...itemStatements(context),
    ...queueLimitStatements(context),
    ...flowStatements(context),
    ...checkpointStatements(context),
    ...streamStatements(context),
    ...scheduleStatements(context),
    ...workerStatements(context),
    ...sweepStatements(context),
    ...countStatements(context),
  };
  return { context, statements };
}
