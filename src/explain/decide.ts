// Decide: why a run does not move, from the facts that were read. Pure: the same facts have the same reasons.
//
// decide.D1. A reason states what a row or an entry says. Where they do not tell, the reason is `unknown` and names what was read.
// decide.D2. Order: what stops the run as a whole, its turn, its items from stuck to running, what its code waits for, its messages.

import { decode, isErrorCode } from "../base/index.ts";
import {
  costOf,
  DEADLINE_ITEM,
  DIMENSIONS,
  hasEnded,
  isDefaultTimerId,
  promiseNameOf,
  readNodeRoute,
  readWorkerProfile,
  shownCost,
  type OpenBudgetRequest,
  type OpenItem,
  type RunRecord,
  type WorkerInfo,
} from "../kernel/index.ts";
import { claimReasons, liveWorkers, type ClaimableWork } from "./claims.ts";
import { slotText, type RunFacts } from "./facts.ts";
import type { FactsOf, HoldingWorker, LiveWorker, PendingItems, WaitFacts } from "./reasons.ts";
import type { Step } from "./step-fold.ts";
import { nodeOf } from "./typed-entry.ts";

export function decide(facts: RunFacts): readonly WaitFacts[] {
  const { record, work } = facts;
  const messages = outboxReasons(facts);
  if (hasEnded(record.status)) return messages;
  if (record.status === "expected") return [{ reason: "expected", definition: record.definition }];
  const disk = diskReasons(facts);
  const stop = stopReason(record);
  const moving = [...turnReasons(facts), ...itemReasons(facts)];
  // Steps that run when a run stops may finish; nothing else of it moves.
  if (stop !== undefined) return [stop, ...disk, ...moving.filter(isHeld), ...messages];
  const found = [...disk, ...moving, ...waitReasons(facts)];
  if (found.length > 0) return [...found, ...messages];
  // A run without a due turn has something open, or its code handles updates (execution.ts blocks any other).
  const isComplete = facts.isWhole && work.items.length === work.itemCount;
  const rest: WaitFacts = isComplete
    ? { reason: "update" }
    : {
        reason: "unknown",
        checked: `its rows list nothing, and only the last entries of its ${record.head} were read`,
      };
  return [rest, ...messages];
}

/** Less than a commit of one small step needs. */
const MIN_FREE_BYTES = 64 * 1_024;

function diskReasons({ disk }: RunFacts): readonly WaitFacts[] {
  return disk === undefined || disk.freeBytes >= MIN_FREE_BYTES ? [] : [{ reason: "disk_full", ...disk }];
}

function isHeld({ reason }: WaitFacts): boolean {
  return reason === "running" || reason === "lease_expired";
}

// ── the run as a whole ──

interface StoredEvidence {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly where?: unknown;
}

function stopReason({ status, evidence: text }: RunRecord): WaitFacts | undefined {
  if (status === "paused" && text === undefined) return { reason: "paused" };
  if (status !== "paused" && status !== "blocked" && status !== "determinism_violation") return undefined;
  const evidence = (text === undefined ? {} : decode(text)) as StoredEvidence;
  const otherwise = status === "determinism_violation" ? "DETERMINISM_VIOLATION" : "RUN_BLOCKED";
  return {
    reason: "stopped",
    code: isErrorCode(evidence.code) ? evidence.code : otherwise,
    message: typeof evidence.message === "string" ? evidence.message : "no evidence was stored",
    ...(typeof evidence.where === "string" && { where: evidence.where }),
  };
}

function turnReasons(facts: RunFacts): readonly WaitFacts[] {
  const { record, work, workers, now } = facts;
  const { turn } = work;
  const isNotStarted = turn.due === "not_started";
  const pending = runWork(record, isNotStarted ? "start" : "run");
  if (turn.worker !== undefined) return [heldReason(facts, pending, turn.worker, turn.since)];
  // The item `Start` says what it waits for.
  if (turn.due === "no" || isNotStarted) return [];
  const claimed = { kind: "turn", name: record.definition, version: record.version } as const;
  const unread = Math.max(0, record.arrivals - record.read);
  return claimReasons(
    {
      work: pending,
      claimed: { ...claimed, queue: undefined, label: undefined },
      use: undefined,
      takeovers: turn.takeovers,
      unread,
    },
    workers,
    now,
  );
}

function runWork({ id, definition, version }: RunRecord, kind: "run" | "start"): PendingItems {
  return { run: id, kind, name: definition, version, count: 1, commands: [] };
}

/** Running under a valid lease, or waiting for the takeover. */
function heldReason(
  { workers, committedAt, now }: RunFacts,
  work: PendingItems,
  worker: number,
  since: number | undefined,
): WaitFacts {
  const holder = holdingWorker(worker, workers, now);
  if (!holder.alive) return { reason: "lease_expired", work, worker: holder, workers: liveOnes(workers, now) };
  return {
    reason: "running",
    work,
    worker: holder,
    ...(since !== undefined && { since: new Date(since) }),
    ...(work.kind === "run" && committedAt !== undefined && { lastCommitAt: new Date(committedAt) }),
  };
}

export function holdingWorker(worker: number, workers: readonly WorkerInfo[], now: number): HoldingWorker {
  const info = workers.find((one) => one.worker === worker);
  if (info === undefined) return { worker, alive: false };
  return { worker, name: info.name, alive: info.until > now, leaseUntil: new Date(info.until) };
}

function liveOnes(workers: readonly WorkerInfo[], now: number): readonly LiveWorker[] {
  return liveWorkers(workers, now).map(({ worker, name }) => ({ worker, name, draining: false }));
}

// ── items of the queue ──

/** Commands that are named in one reason. */
const MAX_COMMANDS = 5;

function itemReasons(facts: RunFacts): readonly WaitFacts[] {
  const { work, now } = facts;
  const stuck: WaitFacts[] = [];
  const running: WaitFacts[] = [];
  const timed: WaitFacts[] = [];
  const unfunded = new Set(work.budgetRequests.map(({ command }) => command));
  for (const group of groupsOf(work.items.filter(({ item }) => !unfunded.has(item)))) {
    const [first] = group;
    const pending = pendingOf(facts, group);
    switch (first.state) {
      case "leased":
        if (first.worker !== undefined) running.push(heldReason(facts, pending, first.worker, earliest(group)));
        break;
      case "ready":
      case "parked":
      case "suspect":
        stuck.push(...claimReasons(claimableOf(facts, first, pending), facts.workers, now));
        break;
      case "delayed":
        timed.push(...delayedReasons(facts, first, pending));
        break;
      case "stopped":
      case "admitted":
        break;
    }
  }
  return [...stuck, ...running, ...timed, ...overdueReasons(facts)];
}

type ItemGroup = readonly [OpenItem, ...OpenItem[]];

/** Items that wait for the same; a delayed one has a time of its own. */
function groupsOf(items: readonly OpenItem[]): readonly ItemGroup[] {
  const groups = new Map<string, [OpenItem, ...OpenItem[]]>();
  for (const item of items) {
    const { kind, name, state, queue, key, worker, takeovers } = item;
    const alike =
      state === "delayed" ? [item.item] : [kind, kind === "node" ? "" : name, state, queue, key, worker, takeovers];
    const text = JSON.stringify(alike);
    const group = groups.get(text);
    if (group === undefined) groups.set(text, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

function earliest(group: ItemGroup): number | undefined {
  const times = group.flatMap(({ since }) => (since === undefined ? [] : [since]));
  return times.length === 0 ? undefined : Math.min(...times);
}

function pendingOf({ record, work: { items, itemCount } }: RunFacts, group: ItemGroup): PendingItems {
  const [{ kind, name, queue, key }] = group;
  const slot = { ...(queue !== undefined && { queue }), ...(key !== undefined && { key }) };
  if (kind === "start") return { ...runWork(record, "start"), ...slot };
  const { definition, version } = record;
  return {
    run: record.id,
    kind: kind === "node" ? "node" : "task",
    ...(kind === "node" ? { name: definition, version } : { name }),
    ...slot,
    count: group.length,
    ...(itemCount > items.length && { more: true }),
    commands: group.slice(0, MAX_COMMANDS).map(({ item }) => item),
  };
}

function claimableOf({ record, queues }: RunFacts, item: OpenItem, work: PendingItems): ClaimableWork {
  const { kind, name, queue, key, takeovers } = item;
  const route = kind === "node" ? readNodeRoute(name) : undefined;
  const { definition, version } = record;
  const isTask = kind === "task";
  return {
    work,
    claimed: {
      kind: kind === "timer" ? "turn" : kind,
      name: isTask ? name : (route?.definition ?? definition),
      version: isTask ? undefined : (route?.version ?? version),
      queue: route === undefined ? queue : route.queue,
      label: route?.label,
    },
    use: queue === undefined ? undefined : queues.get(slotText(kind, queue, key)),
    takeovers,
    unread: 0,
  };
}

function delayedReasons(facts: RunFacts, item: OpenItem, work: PendingItems): readonly WaitFacts[] {
  const { now, open, workers } = facts;
  const { kind, availableAt, attempt } = item;
  const until = new Date(availableAt);
  if (item.item === DEADLINE_ITEM) return availableAt > now ? [] : [{ reason: "deadline", at: until }];
  if (kind === "timer") {
    // The timer of a wait with a timeout: the wait has the reason.
    if (open.some(({ command, kind: step }) => command === item.item && step !== "sleep")) return [];
    const id = open.find(({ command }) => command === item.item)?.name;
    const name = id === undefined || isDefaultTimerId(id) ? {} : { name: id };
    return [{ reason: "timer", command: item.item, ...name, until, ...nodeName(facts, item.item) }];
  }
  if (availableAt <= now) return claimReasons(claimableOf(facts, item, work), workers, now);
  if (attempt === 0 || kind === "start") return [{ reason: "delay", until, work }];
  const failures = item.failures === undefined ? [] : (decode(item.failures) as readonly unknown[]);
  return [
    {
      reason: "retry",
      kind: kind === "node" ? "node" : "task",
      name: kind === "node" ? item.item : item.name,
      command: item.item,
      attempt: attempt + 1,
      until,
      ...(failures.length > 0 && { error: failures.at(-1) }),
    },
  ];
}

/** A timer that is due makes the turn of its run due: why no worker with the definition has processed it. */
function overdueReasons({ record, work, workers, now }: RunFacts): readonly WaitFacts[] {
  const { definition: name, version } = record;
  const isOverdue = work.items.some(
    ({ kind, state, availableAt }) => kind === "timer" && state === "delayed" && availableAt <= now,
  );
  // Otherwise the turn has its own reason.
  if (!isOverdue || work.turn.due !== "no" || work.turn.worker !== undefined) return [];
  return claimReasons(
    {
      work: runWork(record, "run"),
      claimed: { kind: "turn", name, version, queue: undefined, label: undefined },
      use: undefined,
      takeovers: 0,
      unread: 0,
    },
    workers,
    now,
  );
}

// ── what the code waits for ──

function waitReasons(facts: RunFacts): readonly WaitFacts[] {
  const { open, retries, joins, work, now } = facts;
  const awaited = new Set(open.flatMap(({ child }) => (child === undefined ? [] : [child])));
  return [
    ...work.budgetRequests.map(budgetReason),
    ...retries
      .filter(({ until }) => until > now)
      .map((one): WaitFacts => ({ reason: "retry", ...one, name: nameOf(facts, one), until: new Date(one.until) })),
    ...open.flatMap((step) => stepReasons(facts, step)),
    ...work.children
      .filter(({ id, command }) => command !== undefined && !awaited.has(id))
      .map((child) => childReason(facts, child)),
    ...work.nodes.map(({ node, required, completed, arrived }): WaitFacts => ({
      reason: "inputs",
      node: node.replace(/\[\]$/, ""),
      completed,
      required,
      arrived,
    })),
    ...joins.map((join): WaitFacts => ({ reason: "join", ...join })),
  ];
}

function budgetReason({ command, at, budget: { state, reserve } }: OpenBudgetRequest): WaitFacts {
  const { owner, cap, spent, reserved, lost } = state;
  const missing = DIMENSIONS.flatMap((one) => {
    const limit = cap[one];
    const lacking = limit === undefined ? 0 : spent[one] + lost[one] + reserved[one] + reserve[one] - limit;
    return lacking > 0 && reserve[one] > 0 ? [[one, lacking] as const] : [];
  });
  const shown = Object.entries({ reserve, spent, reserved, lost }).map(([book, one]) => [book, shownCost(one, cap)]);
  return {
    ...{ reason: "budget", command, owner, since: new Date(at), cap: costOf(cap) },
    ...(Object.fromEntries(shown) as Pick<FactsOf<"budget">, "reserve" | "spent" | "reserved" | "lost">),
    missing: costOf(Object.fromEntries(missing)),
  };
}

function nameOf(facts: RunFacts, { kind, command, name }: RunFacts["retries"][number]): string {
  return kind === "node" ? (facts.nodes.get(command) ?? name) : name;
}

/** Tasks and timers have items, which say more. */
function stepReasons(facts: RunFacts, step: Step): readonly WaitFacts[] {
  const { kind, name, command, until, child } = step;
  const since = step.startedAt === undefined ? undefined : new Date(step.startedAt);
  const times = {
    ...(since && { since }),
    ...(until !== undefined && { until: new Date(until) }),
    ...nodeName(facts, command),
  };
  const key = step.key === undefined ? keyOf(facts, command) : { key: step.key };
  switch (kind) {
    case "promise":
      return [
        {
          reason: "promise",
          name: promiseNameOf({ promiseId: name, ...key }),
          command,
          ...key,
          ...times,
          ...("show" in step && step.show !== undefined && { show: step.show }),
        },
      ];
    case "signal":
      return [{ reason: "signal", names: step.signals, command, ...times }];
    case "child":
      return child === undefined ? [] : [childReason(facts, { id: child, definition: name, command, since })];
    case "update":
      return [{ reason: "update_answer", name, ...(since && { since }) }];
    // The store answers a settlement in the commit that sends it: the unread answer makes the turn due.
    case "settle":
    case "task":
    case "sleep":
    case "operation":
    case "node":
    case "spread":
    case "send":
      return [];
  }
}

function keyOf({ work }: RunFacts, command: string): { readonly key?: string } {
  const key = work.promises.find((one) => one.command === command)?.key;
  return key === undefined ? {} : { key };
}

function childReason(
  facts: RunFacts,
  child: {
    readonly id: string;
    readonly definition: string;
    readonly command: string | undefined;
    readonly status?: RunRecord["status"];
    readonly since?: Date | undefined;
  },
): WaitFacts {
  const { id, definition, command, since } = child;
  const explained = facts.children.get(id);
  const status = explained?.status ?? child.status;
  return {
    reason: "child",
    child: id,
    definition,
    ...(status !== undefined && { status }),
    ...(command !== undefined && { command, ...nodeName(facts, command) }),
    ...(since !== undefined && { since }),
    waitsFor: explained?.waitsFor ?? [],
  };
}

/** The node of a graph whose code created the command: `review 5.0`. */
function nodeName({ nodes }: RunFacts, command: string): { readonly node?: string } {
  const owner = nodeOf(command);
  if (owner === undefined) return {};
  const place = owner.slice("Node(".length, -1);
  const name = nodes.get(owner);
  return { node: name === undefined ? place : `${name} ${place}` };
}

// ── messages ──

function outboxReasons({ work, workers, now }: RunFacts): readonly WaitFacts[] {
  const reasons: WaitFacts[] = [];
  for (const [destination, messages] of Map.groupBy(work.messages, (one) => one.destination)) {
    const [first] = messages;
    if (first === undefined) continue;
    const delivered = hasHandler(destination, workers, now);
    reasons.push({
      reason: "outbox",
      destination,
      pending: messages.length,
      sentAt: new Date(first.sentAt),
      failed: first.attempt,
      ...(first.attempt > 0 && { nextAt: new Date(first.availableAt) }),
      ...(first.worker !== undefined && { worker: holdingWorker(first.worker, workers, now) }),
      ...(delivered !== undefined && { delivered }),
    });
  }
  return reasons;
}

/** Undefined: a live worker of an older version does not publish its destinations, and no other one has the handler. */
function hasHandler(destination: string, workers: readonly WorkerInfo[], now: number): boolean | undefined {
  const profiles = liveWorkers(workers, now).map(({ profile }) => readWorkerProfile(profile));
  if (profiles.some((profile) => profile?.destinations.includes(destination))) return true;
  return profiles.includes(undefined) ? undefined : false;
}
