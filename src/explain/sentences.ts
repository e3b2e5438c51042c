// Sentences: what each reason says to people, and the commands that help. One sentence per reason, with the values.

import { inspect } from "node:util";
import { formatMs, shellWord, toMs, type Duration } from "../base/index.ts";
import { costText, MAX_TAKEOVERS, workerTag, type Cost, type Limit, type QueueOptions } from "../kernel/index.ts";
import type { FactsOf, HoldingWorker, LiveWorker, PendingItems, WaitFacts, WaitReason } from "./reasons.ts";

/** What a sentence needs besides the facts of its reason. */
export interface AdvisedRun {
  readonly id: string;
  readonly now: number;
  /** A message that the run has not read may be the answer it waits for. */
  readonly hasUnread: boolean;
}

export function withAdvice(facts: WaitFacts, run: AdvisedRun): WaitReason {
  return { ...facts, text: textOf(facts, run), next: nextOf(facts, run) };
}

/** The reason with its payloads as `shown` gives them, in its facts and in its sentence. Without `shown`: without payloads. */
export function withPayloads(reason: WaitReason, run: AdvisedRun, shown?: (payload: unknown) => unknown): WaitReason {
  if (reason.reason === "child") {
    const waitsFor = reason.waitsFor.map((one) => withPayloads(one, { ...run, id: reason.child }, shown));
    return { ...reason, waitsFor, text: textOf({ ...reason, waitsFor }, run) };
  }
  if (reason.reason !== "promise" && reason.reason !== "retry") return reason;
  const { show, error, ...rest } = reason as WaitReason & { show?: unknown; error?: unknown };
  const facts = {
    ...rest,
    ...(shown !== undefined && show !== undefined && { show: shown(show) }),
    ...(shown !== undefined && error !== undefined && { error: shown(error) }),
  };
  return { ...(facts as WaitReason), text: textOf(facts as WaitFacts, run) };
}

function textOf(facts: WaitFacts, { now }: AdvisedRun): string {
  switch (facts.reason) {
    case "paused":
      return "The run is paused: no new step starts, and messages are accepted.";
    case "stopped":
      return `The engine stopped the run, ${facts.code}: ${facts.message}`;
    case "expected":
      return `Messages have arrived for it, but no call has started the run of ${facts.definition}.`;
    case "disk_full":
      return `The disk of the store is full: ${facts.freeBytes} bytes are free in ${facts.folder}, so no worker can commit.`;
    case "delay":
      return `${subject(facts.work)} ${verb(facts.work, "starts", "start")} ${inText(facts.until, now)}.`;
    case "queue_paused":
      return `Queue ${facts.queue} ${facts.since === undefined ? "is paused" : `has been paused for ${ageText(facts.since, now)}`}; ${pendingText(facts.work)} ${verb(facts.work, "waits", "wait")} in it.`;
    case "concurrency_limit":
      return concurrencyText(facts);
    case "rate_limit":
      return rateText(facts, now);
    case "no_worker":
      return noWorkerText(facts);
    case "unclaimed":
      return unclaimedText(facts);
    case "suspect":
      return suspectText(facts);
    case "running":
      return runningText(facts, now);
    case "lease_expired":
      return expiredText(facts, now);
    case "retry":
      return `Attempt ${facts.attempt} of ${facts.kind} ${facts.name} starts ${inText(facts.until, now)}${facts.error === undefined ? "" : `; attempt ${facts.attempt - 1} failed: ${valueText(facts.error)}`}.`;
    case "timer":
      return facts.until.getTime() > now
        ? `${who(facts)} waits for ${timerText(facts)}, which fires ${inText(facts.until, now)}.`
        : `${who(facts)} waits for ${timerText(facts)}, which is overdue by ${formatMs(now - facts.until.getTime())}.`;
    case "deadline":
      return `Its deadline passed ${formatMs(now - facts.at.getTime())} ago, and no worker has processed that.`;
    case "promise":
      return `${waits(facts, now)} promise ${facts.name}${facts.key === undefined ? "" : ` with key ${facts.key}`}${limitText(facts, now)}${"show" in facts ? `, showing ${valueText(facts.show)}` : ""}.`;
    case "budget":
      return budgetText(facts, now);
    case "signal":
      return `${waits(facts, now)} signal ${facts.names.join(" or ")}${limitText(facts, now)}.`;
    case "child":
      return childText(facts, now);
    case "update_answer":
      return `Its code has not answered update ${facts.name}${facts.since === undefined ? "" : `, which arrived ${agoText(facts.since, now)}`}.`;
    case "update":
      return "No task, timer, promise, signal or child of it is open: only an update or a cancel continues it.";
    case "inputs":
      return `Node ${facts.node} waits for ${countText(facts.required - facts.completed, "more input", "more inputs")}; ${facts.completed} of ${facts.required} arrived${facts.arrived.length === 0 ? "" : `, from ${facts.arrived.join(", ")}`}.`;
    case "join":
      return `Node ${facts.node} waits for more branches; ${facts.arrived.join(", ") || "none"} arrived.`;
    case "outbox":
      return outboxText(facts, now);
    case "schedule":
      return scheduleText(facts, now);
    case "unknown":
      return `What it waits for is not known: ${facts.checked}.`;
  }
}

function nextOf(facts: WaitFacts, { id, hasUnread }: AdvisedRun): readonly string[] {
  switch (facts.reason) {
    case "paused":
    case "stopped":
      return [commandLine("resume", id)];
    case "expected":
      return [`reprise run <file> ${shellWord(facts.definition)} '<input as JSON>' --id ${shellWord(id)}`];
    case "queue_paused":
      return [commandLine("queue", "resume", facts.queue)];
    case "concurrency_limit":
      return [
        // A run that waits for its own items shows them already.
        ...facts.holders
          .filter(({ run }) => run !== id)
          .slice(0, 1)
          .map(({ run }) => commandLine("show", run)),
        raiseLimit(facts, (limit) => ({ ...limit, concurrency: facts.limit + 1 })),
      ];
    case "rate_limit":
      return [raiseLimit(facts, (limit) => ({ ...limit, rate: { limit: facts.limit * 2, per: `${facts.perMs}ms` } }))];
    case "no_worker": {
      const { label, queue } = facts;
      const options = [
        ...(label === undefined ? [] : [`--labels ${shellWord(label)}`]),
        ...(queue === undefined ? [] : [`--queues ${shellWord(queue)}`]),
      ];
      return [["reprise worker <file>", ...options].join(" ")];
    }
    case "unclaimed":
      return ["reprise top"];
    case "suspect":
      return [commandLine("pause", id)];
    case "lease_expired":
      return facts.workers.length === 0 ? ["reprise worker <file>"] : [];
    case "promise":
      if (hasUnread) return [];
      return [
        `${commandLine("resolve", id, facts.name)} '<value as JSON>'${facts.key === undefined ? "" : ` --key ${shellWord(facts.key)}`}`,
      ];
    case "budget":
      return [`${commandLine("raise", facts.owner)} ${costOptions(facts.missing)}`];
    case "signal":
      return hasUnread ? [] : facts.names.map((name) => `${commandLine("signal", id, name)} '<value as JSON>'`);
    case "child":
      return facts.waitsFor[0]?.next ?? [commandLine("show", facts.child)];
    case "outbox":
      return facts.delivered === false ? ["reprise worker <file>"] : [];
    case "schedule":
      return scheduleCommands(facts);
    case "unknown":
      return [commandLine("show", id)];
    case "disk_full":
      return [`df -h ${shellWord(facts.folder)}`];
    case "delay":
    case "running":
    case "retry":
    case "timer":
    case "deadline":
    case "update_answer":
    case "update":
    case "inputs":
    case "join":
      return [];
  }
}

// ── limits ──

function concurrencyText({ queue, key, limit, held, holders, work }: FactsOf<"concurrency_limit">): string {
  const [one, several] = work.kind === "start" ? ["run", "runs"] : ["task", "tasks"];
  const ofKey = key === undefined ? "" : ` for the key ${key}`;
  const named = holders.map(({ run, command }) => (command === undefined ? run : `${command} of ${run}`));
  const more = held - named.length;
  const who = named.length === 0 ? "" : `: ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return `Queue ${queue} runs at most ${countText(limit, one, several)} at once${ofKey}, and ${held} ${held === 1 ? "holds its slot" : "hold its slots"}${who}; ${pendingText(work)} ${verb(work, "waits", "wait")} for a free one.`;
}

function rateText({ queue, key, limit, perMs, opensAt, work }: FactsOf<"rate_limit">, now: number): string {
  const [one, several] = work.kind === "start" ? ["run", "runs"] : ["attempt of a task", "attempts of tasks"];
  const ofKey = key === undefined ? "" : ` for the key ${key}`;
  const when = opensAt === undefined ? "" : `; the next may start ${inText(opensAt, now)}`;
  return `Queue ${queue} starts at most ${countText(limit, one, several)} per ${formatMs(perMs)}${ofKey}, and has started that many${when}; ${pendingText(work)} ${verb(work, "waits", "wait")}.`;
}

/** The limits as they are, with one of them raised: `queue limit` replaces all of them. */
function raiseLimit(
  { queue, key, limits }: FactsOf<"concurrency_limit"> | FactsOf<"rate_limit">,
  raise: (limit: Limit) => Limit,
): string {
  const { perKey, ...own } = limits;
  const changed: QueueOptions =
    key === undefined ? { ...raise(own), ...(perKey && { perKey }) } : { ...own, perKey: raise(perKey ?? {}) };
  const options = [...limitOptions(changed, ""), ...limitOptions(changed.perKey ?? {}, "key-")];
  return `${commandLine("queue", "limit", queue)} ${options.join(" ")}`;
}

function limitOptions({ concurrency, rate }: Limit, prefix: string): readonly string[] {
  return [
    ...(concurrency === undefined ? [] : [`--${prefix}concurrency ${concurrency}`]),
    ...(rate === undefined ? [] : [`--${prefix}rate ${rate.limit}/${shortDuration(rate.per)}`]),
  ];
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** `1m`, as options accept it. */
function shortDuration(duration: Duration): string {
  const ms = toMs(duration);
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

// ── workers ──

function noWorkerText({ work, unread = 0, label, queue, workers }: FactsOf<"no_worker">): string {
  const messages = unread === 0 ? "" : ` with ${countText(unread, "unread message", "unread messages")}`;
  const { kind, name, version } = work;
  const needed = kind === "task" ? undefined : `${name} version ${version}`;
  if (workers.length === 0) {
    const needs = needed === undefined ? "one that has it" : `one with ${needed}`;
    return `No worker is live; ${pendingText(work)}${messages} ${verb(work, "needs", "need")} ${needs}.`;
  }
  // A worker that lacks only the label or the queue has the definition.
  const isMissing = label === undefined && queue === undefined && needed !== undefined;
  const live = workers.map((one) => `${workerText(one)} ${one.lacks ?? "claims such work"}`);
  return `No live worker can claim ${pendingText(work)}${messages}${isMissing ? `, which ${verb(work, "needs", "need")} ${needed}` : ""}: ${listText(live)}.`;
}

function unclaimedText({ work, unread, perKey, workers }: FactsOf<"unclaimed">): string {
  const why = unread === 0 ? "" : `, with ${countText(unread, "unread message", "unread messages")}`;
  const able = workers.filter(({ lacks }) => lacks === undefined);
  const state = ({ running, concurrency, draining }: LiveWorker): string => {
    if (draining) return " is shutting down";
    const isFull = running !== undefined && concurrency !== undefined && running >= concurrency;
    return isFull ? ` ran ${running} of ${concurrency} steps at its last heartbeat` : "";
  };
  const states = able.map((one) => `${workerText(one)}${state(one)}`);
  const can = `${listText(states)} ${able.length === 1 ? "claims" : "claim"} such work`;
  const known = able.length === 0 ? "a live worker does not publish what it claims" : can;
  return `${subject(work)} ${verb(work, "is", "are")} due${why}, and no worker has claimed ${work.count === 1 ? "it" : "them"} yet; ${known}${perKey === true ? `, and queue ${work.queue} has limits per key, which may hold some back` : ""}.`;
}

function suspectText({ work, takeovers, groupSize }: FactsOf<"suspect">): string {
  const group = groupSize === 1 ? "alone" : `together with at most ${groupSize - 1} others`;
  return `${subject(work)} ${verb(work, "was", "were")} taken over ${takeovers} times in a row without a commit, so workers claim ${work.count === 1 ? "it" : "them"} ${group}; after ${MAX_TAKEOVERS} takeovers the engine stops the run.`;
}

function runningText({ work, worker, since, lastCommitAt }: FactsOf<"running">, now: number): string {
  const commit = lastCommitAt === undefined ? "" : `, last commit ${agoText(lastCommitAt, now)}`;
  const lease =
    worker.leaseUntil === undefined
      ? ""
      : `; its lease is valid for ${formatMs(Math.max(0, worker.leaseUntil.getTime() - now))}`;
  const executes =
    since === undefined
      ? `executes ${pendingText(work)}`
      : `has executed ${pendingText(work)} for ${ageText(since, now)}`;
  return `Worker ${workerText(worker)} ${executes}${commit}${lease}.`;
}

function expiredText({ work, worker, workers }: FactsOf<"lease_expired">, now: number): string {
  const lease =
    worker.leaseUntil === undefined
      ? `Worker ${workerText(worker)}, which holds ${pendingText(work)}, is not registered`
      : `The lease of worker ${workerText(worker)}, which held ${pendingText(work)}, expired ${agoText(worker.leaseUntil, now)}`;
  const next =
    workers.length === 0
      ? "no live worker can take it over"
      : `worker ${workerText(workers[0]!)} takes it over with its next heartbeat`;
  return `${lease}; ${next}.`;
}

/** `shop-1 (2f9k)`, or only the number. */
export function workerText({ worker, name }: Pick<HoldingWorker, "worker"> & { readonly name?: string }): string {
  return name === undefined ? String(worker) : `${name} (${workerTag(worker)})`;
}

// ── waits ──

function childText(facts: FactsOf<"child">, now: number): string {
  const { child: id, definition, status, waitsFor } = facts;
  const [first] = waitsFor;
  const child = definition === undefined ? id : `${definition}, run ${id}`;
  const state = status === undefined ? "which the store does not have" : status;
  const why = first === undefined ? "" : `: ${startLower(first.text.replace(/\.$/, ""))}`;
  return `${waits(facts, now)} child ${child}, ${state}${why}.`;
}

function outboxText(facts: FactsOf<"outbox">, now: number): string {
  const { destination, pending, sentAt, failed, nextAt, worker, delivered } = facts;
  const parts = [
    `${countText(pending, "message", "messages")} to ${destination} ${pending === 1 ? "is" : "are"} not delivered, the oldest for ${ageText(sentAt, now)}`,
    ...(failed === 0 ? [] : [`${countText(failed, "delivery", "deliveries")} failed`]),
    ...(worker === undefined ? [] : [`worker ${workerText(worker)} delivers it now`]),
    ...(nextAt !== undefined && nextAt.getTime() > now ? [`the next delivery starts ${inText(nextAt, now)}`] : []),
    ...(delivered === false ? [`no live worker delivers to ${destination}`] : []),
  ];
  return `${parts.join("; ")}.`;
}

function scheduleText(facts: FactsOf<"schedule">, now: number): string {
  const { schedule, definition, state, queued, run, at, workers = [] } = facts;
  switch (state) {
    case "paused":
      return `Schedule ${schedule} is paused.`;
    case "over":
      return `The pattern of schedule ${schedule} has no more times.`;
    case "overlap":
      return `${countText(queued, "planned time", "planned times")} of schedule ${schedule} ${queued === 1 ? "waits" : "wait"} for the end of run ${run}.`;
    case "planned":
      return `Schedule ${schedule} starts its next run ${at === undefined ? "later" : inText(at, now)}.`;
    case "overdue": {
      const late = at === undefined ? "" : ` ${agoText(at, now)}`;
      const due = `Schedule ${schedule} was due${late}, and no worker has started its run`;
      if (workers.length === 0) return `${due}: no worker is live.`;
      const live = workers.map((one) => `${workerText(one)} ${one.lacks ?? `has ${definition}`}`);
      return `${due}: ${listText(live)}.`;
    }
  }
}

function scheduleCommands({ schedule, state, run, workers = [] }: FactsOf<"schedule">): readonly string[] {
  if (state === "paused") return [commandLine("schedule", "resume", schedule)];
  if (state === "overlap" && run !== undefined) return [commandLine("show", run)];
  const isFired = workers.some(({ lacks }) => lacks === undefined);
  return state === "overdue" && !isFired ? ["reprise worker <file>"] : [];
}

/** `It has waited` after a colon. Other first words are names, or read well as they are. */
function startLower(text: string): string {
  return text.replace(/^(?:It|The|No|Its)\b/, (word) => word.toLowerCase());
}

/** The node whose code waits, or the run. */
function who({ node }: { readonly node?: string | undefined }): string {
  return node === undefined ? "It" : `Node ${node}`;
}

/** `It has waited 3 m for` */
function waits(facts: { readonly node?: string; readonly since?: Date }, now: number): string {
  const { since } = facts;
  return since === undefined ? `${who(facts)} waits for` : `${who(facts)} has waited ${ageText(since, now)} for`;
}

function limitText({ until }: { readonly until?: Date }, now: number): string {
  if (until === undefined) return "";
  const left = until.getTime() - now;
  return left > 0
    ? `, times out in ${formatMs(left)}`
    : `, timed out ${formatMs(-left)} ago, and no worker has processed that`;
}

// ── words ──

const NOUNS: Readonly<Record<PendingItems["kind"], readonly [string, string]>> = {
  run: ["run", "runs"],
  start: ["run", "runs"],
  task: ["task", "tasks"],
  node: ["node", "nodes"],
};

/** `the run`, `task charge`, `3 tasks charge`, `3 runs of order v2` */
export function pendingText({ run, kind, name, version, count, commands, more }: PendingItems): string {
  const [one, several] = NOUNS[kind];
  const counted = `${count}${more === true && count > 1 ? "+" : ""}`;
  if (kind === "run" || kind === "start")
    return run !== undefined ? `the ${one}` : `${countText(count, one, several)} of ${name} v${version}`;
  if (kind === "node" && commands.length > 0)
    return count === 1 ? `node ${commands[0]}` : `${counted} nodes (${listText(commands, count)})`;
  if (kind === "node") return `${countText(count, one, several)} of ${name} v${version}`;
  return count === 1 ? `${one} ${name}` : `${counted} ${several} ${name}`;
}

function subject(work: PendingItems): string {
  const text = pendingText(work);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function verb({ count }: PendingItems, one: string, several: string): string {
  return count === 1 ? one : several;
}

function countText(count: number, one: string, several: string): string {
  return `${count} ${count === 1 ? one : several}`;
}

const MAX_LISTED = 4;

function listText(texts: readonly string[], total = texts.length): string {
  const shown = texts.slice(0, MAX_LISTED);
  const more = total - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function inText(at: Date, now: number): string {
  const left = at.getTime() - now;
  return left > 0 ? `in ${formatMs(left)}, at ${at.toISOString()}` : "now";
}

function agoText(at: Date, now: number): string {
  return `${ageText(at, now)} ago`;
}

function ageText(at: Date, now: number): string {
  return formatMs(Math.max(0, now - at.getTime()));
}

const VALUE_WIDTH = 200;

function valueText(value: unknown): string {
  const text =
    value instanceof Error
      ? `${value.name}: ${value.message}`
      : inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 4, maxArrayLength: 10, maxStringLength: 500 });
  const line = text.replace(/\n\s*/g, " ");
  return line.length <= VALUE_WIDTH ? line : `${line.slice(0, VALUE_WIDTH - 1).toWellFormed()}…`;
}

function commandLine(...words: readonly string[]): string {
  return `reprise ${words.map(shellWord).join(" ")}`;
}

function timerText({ name }: { readonly name?: string }): string {
  return name === undefined ? "a timer" : `timer ${name}`;
}

function budgetText({ command, since, reserve, cap, spent, reserved, lost }: FactsOf<"budget">, now: number): string {
  const used = `${costText(spent)} spent, ${costText(reserved)} reserved, ${costText(lost)} lost`;
  return `${command} has waited ${formatMs(Math.max(0, now - since.getTime()))} for the budget of ${costText(cap)}: it would reserve ${costText(reserve)}, and the budget has ${used}.`;
}

/** `--usd 2 --tokens 100` */
function costOptions(cost: Cost): string {
  return Object.entries(cost)
    .map(([name, amount]) => `--${name} ${String(amount)}`)
    .join(" ");
}
