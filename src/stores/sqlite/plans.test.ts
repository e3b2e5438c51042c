import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MIGRATIONS } from "./schema.ts";
import { STATEMENT_TEXTS } from "./statements.ts";

type Name = keyof typeof STATEMENT_TEXTS;

function planOf(name: Name): string {
  const db = new DatabaseSync(":memory:");
  for (const migration of MIGRATIONS) db.exec(migration);
  const rows = db.prepare(`explain query plan ${STATEMENT_TEXTS[name]}`).all() as { detail: string }[];
  db.close();
  return rows.map(({ detail }) => detail).join("\n");
}

test.each<[Name, RegExp]>([
  ["dueTurns", /^SEARCH runs USING (COVERING )?INDEX runs_due \(definition=\? AND version=\?\)$/],
  ["readyItems", /^SEARCH queue USING INDEX queue_ready \(name=\?\)$/],
  ["readyItemsInQueue", /^SEARCH queue USING INDEX queue_lined \(kind=\? AND queue=\? AND name=\?\)$/],
  ["countBusyInQueue", /^SEARCH queue USING COVERING INDEX queue_busy \(kind=\? AND queue=\?\)$/],
  ["countBusyInKey", /^SEARCH queue USING COVERING INDEX queue_busy \(kind=\? AND queue=\? AND key=\? AND state=\?\)$/],
  ["dueRateGates", /^SEARCH lanes USING (COVERING )?INDEX lanes_opening \(opens_at<\?\)$/],
  ["nextRateGate", /^SEARCH lanes USING COVERING INDEX lanes_opening$/],
  ["rateUse", /^SEARCH begun USING PRIMARY KEY \(kind=\? AND queue=\? AND key=\? AND until>\?\)$/],
  ["dueItems", /^SEARCH queue USING INDEX queue_delayed \(available_at<\?\)$/],
  ["nextDue", /^SEARCH queue USING COVERING INDEX queue_delayed$/],
  ["nextOutgoing", /^SEARCH outbox USING INDEX outbox_next \(destination=\? AND available_at<\?\)$/],
  ["outgoingDueAt", /^SEARCH outbox USING (COVERING )?INDEX outbox_next \(destination=\? AND available_at>\?\)$/],
  ["dueSchedules", /^SEARCH schedules USING INDEX schedules_due \(definition=\? AND due_at>\? AND due_at<\?\)\n/],
  ["nextSchedule", /^SEARCH schedules USING COVERING INDEX schedules_due \(definition=\? AND due_at>\?\)$/],
  ["schedulesWithBacklog", /^SEARCH schedules USING INDEX schedules_in_line \(definition=\?\)\n/],
  [
    "inputsOfNode",
    /^SEARCH arrivals USING PRIMARY KEY \(run=\? AND target=\?\)\nSEARCH journal USING INDEX sqlite_autoindex_journal_1 \(run=\? AND seq=\?\)$/,
  ],
  ["suspectTurns", /^SEARCH runs USING INDEX runs_suspect \(definition=\? AND version=\?\)$/],
  ["suspectTurnGroup", /^SEARCH runs USING INDEX runs_suspect \(definition=\? AND version=\?\)$/],
  ["suspectItems", /^SEARCH queue USING INDEX queue_suspect \(name=\?\)$/],
  ["suspectItemGroup", /^SEARCH queue USING INDEX queue_suspect \(name=\?\)$/],
  ["holdsIsolatedTurn", /^SEARCH runs USING INDEX runs_held \(turn_worker=\?\)$/],
  ["holdsIsolatedItem", /^SEARCH queue USING INDEX queue_leased \(worker=\?\)$/],
  ["readinessOfRun", /^SEARCH readiness USING PRIMARY KEY \(run=\?\)$/],
  ["hasTasks", /^SEARCH queue USING PRIMARY KEY \(run=\?\)$/],
  ["stopNodes", /^SEARCH queue USING PRIMARY KEY \(run=\?\)$/],
  ["returnWorkerItems", /^SEARCH queue USING (COVERING )?INDEX queue_leased \(worker=\?\)$/],
  ["returnWorkerTurns", /^SEARCH runs USING (COVERING )?INDEX runs_held \(turn_worker=\?\)$/],
])("%s reads one index from its front and sorts nothing", (name, plan) => {
  expect(planOf(name)).toMatch(plan);
});

test.each<[Name, string]>([
  ["dueDefinitions", "runs_due (definition>?)"],
  ["readyNames", "queue_ready (name>?)"],
  ["nextQueue", "queue_lined (kind=? AND queue>?)"],
  ["nextNameInQueue", "queue_lined (kind=? AND queue=? AND name>?)"],
  ["nextDueVersion", "runs_due (definition=? AND version>?)"],
  ["dueUpTo", "runs_due (definition=? AND version=?)"],
  ["readyUpTo", "queue_ready (name=?)"],
  ["readyInQueueUpTo", "queue_lined (kind=? AND queue=? AND name=?)"],
  ["nextParkedQueue", "queue_parked (kind=? AND queue>?)"],
  ["nextBusyQueue", "queue_busy (kind=? AND queue>?)"],
  ["busyUpTo", "queue_busy (kind=? AND queue=?)"],
  ["nextDelayedQueue", "queue_later (queue>?)"],
  ["delayedUpTo", "queue_later (queue=? AND kind=?)"],
  ["delayedInQueueUpTo", "queue_later (queue=?)"],
  ["nextDefinition", "runs_live (definition>?)"],
  ["nextVersion", "runs_live (definition=? AND version>?)"],
  ["unparkItems", "queue_parked (kind=? AND queue=? AND key=?)"],
  ["turnHolders", "runs_held (turn_worker>?)"],
  ["itemHolders", "queue_leased (worker>?)"],
  ["outgoingHolders", "outbox_leased (worker>?)"],
  ["scheduledDefinitions", "schedules_due (definition>?)"],
  ["definitionsWithBacklog", "schedules_in_line (definition>?)"],
])("%s seeks from name to name", (name, seek) => {
  expect(planOf(name)).toContain(seek);
  expect(planOf(name)).not.toContain("TEMP B-TREE");
});

/** Statements that scan on purpose: `oldFamilies` and `countStatuses` scan a window at a time, and suspects are few. */
const SCANS: readonly Name[] = [
  "deleteOldWriters",
  "workers",
  "expiredWorkers",
  "leftover",
  "suspectDefinitions",
  "suspectNames",
  "suspectItemsUpTo",
  "suspectTurnsUpTo",
  "countItems",
  "deleteOrphanedStartKeys",
  "queues",
  "countOutgoing",
];

test("no other statement scans a table", () => {
  const scanning = (Object.keys(STATEMENT_TEXTS) as Name[]).filter((name) =>
    planOf(name)
      .split("\n")
      .some(
        (line) =>
          /^\s*SCAN (?!CONSTANT|found|json_each|\(subquery)/.test(line) &&
          !/USING (COVERING )?INDEX (runs_due|queue_ready|runs_held|queue_leased|schedules_due|schedules_in_line|outbox_leased)/.test(
            line,
          ),
      ),
  );
  expect(scanning.toSorted()).toEqual(SCANS.toSorted());
});
