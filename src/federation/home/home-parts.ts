// Home parts: what the operations of a home work on.

import type { Clock } from "../../base/index.ts";
import type { Cells } from "./cells.ts";
import type { Conflicts } from "./conflicts.ts";
import type { Contents } from "./contents.ts";
import type { Counters } from "./counters.ts";
import type { Erasure } from "./erasure.ts";
import type { HomeDatabase } from "./home-database.ts";
import type { Journals } from "./journals.ts";
import type { HomeLimits } from "./limits.ts";
import type { LogTable } from "./log-table.ts";
import type { Origins } from "./origins.ts";

export interface HomeParts {
  readonly dir: string;
  readonly db: HomeDatabase;
  readonly clock: Clock;
  readonly limits: HomeLimits;
  readonly origins: Origins;
  readonly log: LogTable;
  readonly cells: Cells;
  readonly contents: Contents;
  readonly journals: Journals;
  readonly conflicts: Conflicts;
  readonly erasure: Erasure;
  readonly counters: Counters;
}
