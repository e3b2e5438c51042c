// Store cases: the conformance suite of the `Store` port, as plain data.
//
// The cases run on every store in test/stores, and from the CLI on a user's database. A case throws when the store breaks its
// guarantee; it needs no test runner. A store that cannot run a case (a database in memory has no second connection) skips it by
// name, with a written reason.

import { attemptCases } from "./store-cases/attempts.ts";
import { backlogCases } from "./store-cases/backlog.ts";
import { pendingStartCases } from "./store-cases/pending-starts.ts";
import { maintenanceCases, timeCases } from "./store-cases/maintenance.ts";
import { checkpointCases } from "./store-cases/checkpoints.ts";
import { forkCases } from "./store-cases/forks.ts";
import { childCases } from "./store-cases/children.ts";
import { claimCases } from "./store-cases/claim.ts";
import { completionCases } from "./store-cases/completions.ts";
import { controlCases } from "./store-cases/control.ts";
import { migrateCases } from "./store-cases/migrate.ts";
import { beforeStartCases } from "./store-cases/before-start.ts";
import { endCases } from "./store-cases/end.ts";
import { fenceCases } from "./store-cases/fence.ts";
import { flowRunCases } from "./store-cases/flow-runs.ts";
import { generationCases } from "./store-cases/generations.ts";
import { inboxCases } from "./store-cases/inbox.ts";
import { itemCases } from "./store-cases/items.ts";
import { leaseCases } from "./store-cases/lease.ts";
import { suspectCases } from "./store-cases/suspects.ts";
import { keyedAnswerCases } from "./store-cases/keyed-answers.ts";
import { logCases } from "./store-cases/log.ts";
import { listCases } from "./store-cases/list.ts";
import { memoCases } from "./store-cases/memo.ts";
import { messageCases } from "./store-cases/messages.ts";
import { outboxCases } from "./store-cases/outbox.ts";
import { runEventCases } from "./store-cases/run-events.ts";
import { contentCases } from "./store-cases/contents.ts";
import { payloadCases } from "./store-cases/payloads.ts";
import { portionCases } from "./store-cases/portions.ts";
import { runtimeCases } from "./store-cases/runtimes.ts";
import { runWorkCases } from "./store-cases/run-work.ts";
import { budgetCases } from "./store-cases/budgets.ts";
import { promiseCases } from "./store-cases/promises.ts";
import { queueCases } from "./store-cases/queues.ts";
import { leasedSlotsCases } from "./store-cases/leased-slots.ts";
import { refillCases } from "./store-cases/refills.ts";
import { retentionCases } from "./store-cases/retention.ts";
import { scheduleCases } from "./store-cases/schedules.ts";
import { spreadCases } from "./store-cases/spreads.ts";
import { startCases } from "./store-cases/start.ts";
import { stopCases } from "./store-cases/stop.ts";
import type { StoreCase } from "./store-cases/store-case.ts";
import { streamCases } from "./store-cases/streams.ts";
import { timerCases } from "./store-cases/timers.ts";
import { transactCases } from "./store-cases/transact.ts";
import { turnCases } from "./store-cases/turn.ts";
import { wakeUpCases } from "./store-cases/wake-up.ts";

export type { StoreCase, StoreClock, StoreTest, UserSql } from "./store-cases/store-case.ts";

/**
 * The conformance suite of a store, as plain data: each case runs on the stores that a `StoreTest` opens.
 *
 * @example
 * ```ts
 * import { storeCases } from "reprise/testing";
 * for (const { name } of storeCases) console.log(`every store guarantees: ${name}`);
 * ```
 */
export const storeCases: readonly StoreCase[] = [
  ...startCases,
  ...turnCases,
  ...fenceCases,
  ...attemptCases,
  ...endCases,
  ...inboxCases,
  ...memoCases,
  ...messageCases,
  ...promiseCases,
  ...budgetCases,
  ...beforeStartCases,
  ...wakeUpCases,
  ...stopCases,
  ...controlCases,
  ...migrateCases,
  ...claimCases,
  ...itemCases,
  ...timerCases,
  ...queueCases,
  ...refillCases,
  ...leasedSlotsCases,
  ...runWorkCases,
  ...backlogCases,
  ...pendingStartCases,
  ...childCases,
  ...generationCases,
  ...leaseCases,
  ...suspectCases,
  ...listCases,
  ...maintenanceCases,
  ...retentionCases,
  ...timeCases,
  ...payloadCases,
  ...contentCases,
  ...streamCases,
  ...checkpointCases,
  ...forkCases,
  ...scheduleCases,
  ...transactCases,
  ...outboxCases,
  ...runEventCases,
  ...completionCases,
  ...spreadCases,
  ...portionCases,
  ...flowRunCases,
  ...runtimeCases,
  ...logCases,
  ...keyedAnswerCases,
];
