import { attemptsMutants } from "./attempts.ts";
import { checkpointsMutants } from "./checkpoints.ts";
import { forksMutants } from "./forks.ts";
import { claimsMutants } from "./claims.ts";
import { completionsMutants } from "./completions.ts";
import { controlMutants } from "./control.ts";
import { earlyMutants } from "./before-start.ts";
import { fencesMutants } from "./fences.ts";
import { generationsMutants } from "./generations.ts";
import { itemsMutants } from "./items.ts";
import { keyedAnswerMutants } from "./keyed-answers.ts";
import { leasesMutants } from "./leases.ts";
import { logMutants } from "./log.ts";
import { migrateMutants } from "./migrate.ts";
import { messagesMutants } from "./messages.ts";
import { outboxMutants } from "./outbox.ts";
import { runEventMutants } from "./run-events.ts";
import { payloadsMutants } from "./payloads.ts";
import { memoMutants } from "./memo.ts";
import { budgetsMutants } from "./budgets.ts";
import { promisesMutants } from "./promises.ts";
import { queuesMutants } from "./queues.ts";
import { readsMutants } from "./reads.ts";
import { runWorkMutants } from "./run-work.ts";
import { retentionMutants } from "./retention.ts";
import { runtimesMutants } from "./runtimes.ts";
import { schedulesMutants } from "./schedules.ts";
import { startsMutants } from "./starts.ts";
import { stopsMutants } from "./stops.ts";
import { streamsMutants } from "./streams.ts";
import { transactMutants } from "./transact.ts";
import { turnsMutants } from "./turns.ts";
import type { Mutant } from "./mutant.ts";

export type { Mutant } from "./mutant.ts";

export const mutants: readonly Mutant[] = [
  ...keyedAnswerMutants,
  ...fencesMutants,
  ...turnsMutants,
  ...startsMutants,
  ...stopsMutants,
  ...controlMutants,
  ...migrateMutants,
  ...claimsMutants,
  ...itemsMutants,
  ...attemptsMutants,
  ...leasesMutants,
  ...queuesMutants,
  ...readsMutants,
  ...retentionMutants,
  ...payloadsMutants,
  ...messagesMutants,
  ...budgetsMutants,
  ...promisesMutants,
  ...memoMutants,
  ...streamsMutants,
  ...schedulesMutants,
  ...earlyMutants,
  ...transactMutants,
  ...generationsMutants,
  ...outboxMutants,
  ...checkpointsMutants,
  ...forksMutants,
  ...completionsMutants,
  ...runWorkMutants,
  ...runtimesMutants,
  ...logMutants,
  ...runEventMutants,
];
