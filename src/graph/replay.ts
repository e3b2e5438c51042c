// Graph replay: runs the nodes of a graph again, with a context that answers from the journal.
//
// graph.P1. A replay calls no service and writes nothing. The journal answers the calls of `ctx`; OutsideGuard catches a
//   node that uses the network without `ctx`. Only the nodes named in `live` make their calls, and the answers are compared.
// graph.P2. Entries are delivered in the order of the journal, each once the code of its node has asked for it. So the code
//   sees completions in the order of the run.
// graph.P3. Every attempt whose end is in the journal runs with its own recordings (rules.G7) and must end in the same way.
//   The replay continues with the recorded result, so one difference does not cause others.
// graph.P4. A node that is not `recordable` does not run: its recorded result counts (rules.G8). So does an end that the
//   node's code did not cause, such as a timeout.

import { decode, encode, RepriseError, systemTimers, toMs } from "../base/index.ts";
import { findJournalFault, forkOriginOf, isOfType, silentLogger, type DecodedEntry } from "../kernel/index.ts";
import {
  callInStep,
  decodeEffectiveEntries,
  drain,
  endDifference,
  entryData,
  Execution,
  idempotencyKeyOf,
  indexJournal,
  isNotStarted,
  nodeOfCaller,
  OutsideGuard,
  replayEndOf,
  violated,
  type Differs,
  type ExecutionHost,
  type OperationRequest,
  type OperationContext,
  type RecordedJournal,
  type Replay,
  type ReplayDifference,
  type ReplaySource,
  type SentNodeMessage,
  type WorkflowBody,
} from "../workflow/index.ts";
import type { GraphBody, GraphNode } from "./definition.ts";
import { beginGraph, runGraph, type Position } from "./interpreter.ts";
import type { StartNode } from "./scheduler.ts";
import { nodeIdempotencyKey } from "./node-idempotency-key.ts";
import { startNode, type GraphNodeCall } from "./node-run.ts";
import { describeDamage } from "./replay-damage.ts";
import {
  ATTEMPT_ENDS,
  isSameEnd,
  recordedEnd,
  ReplayedAttempt,
  valueOfEnd,
  wasInterrupted,
  type AttemptEndEntry,
} from "./replayed-attempt.ts";
import { hashValue, parseNodeCommand } from "./recorded-io.ts";
import { positionAfter } from "./restore.ts";

/** How long a node's code may wait for a call that the journal does not answer before the replay reports the call. */
const UNRECORDED_MS = 3_000;
/** The longest time that a timer of Node can take. */
const NO_LIMIT_MS = 2 ** 31 - 1;

export async function replayGraph(body: GraphBody, runBody: WorkflowBody, source: ReplaySource): Promise<Replay> {
  const { entries, chain, live = [] } = source;
  for (const name of live)
    if (!body.nodes.has(name))
      throw new RepriseError(
        "BAD_OPTIONS",
        `replay: live names ${name}, which is not a node of graph ${body.name}; its nodes are: ${[...body.nodes.keys()].join(", ")}.`,
      );
  const fault = findJournalFault(entries, { head: entries.length, chain });
  if (fault !== undefined) return { status: "mismatch", ...describeDamage(fault, entries) };
  using replay = new GraphReplay(body, runBody, source);
  return await replay.run();
}

class GraphReplay {
  readonly #body: GraphBody;
  readonly #source: ReplaySource;
  readonly #strict: boolean;
  readonly #live: ReadonlySet<string>;
  readonly #recorded: RecordedJournal;
  readonly #entries: readonly DecodedEntry[];
  readonly #delivered: ReadonlySet<number>;
  readonly #execution: Execution;
  readonly #guard: OutsideGuard;
  readonly #warnings: ReplayDifference[] = [];
  #found: ReplayDifference | undefined;
  /** Ends of attempts the journal has, by command and attempt. */
  readonly #ends = new Map<string, AttemptEndEntry>();
  /** The commands that the journal has of each attempt, by their prefix. */
  readonly #issued = new Map<string, Set<string>>();
  readonly #messages = new Map<string, readonly DecodedEntry<"MessageSent">[]>();
  /** Started items, by command; those whose code runs again have an attempt. */
  readonly #items = new Map<string, Omit<GraphNodeCall, "id" | "key">>();
  readonly #attempts = new Map<string, ReplayedAttempt>();
  #pending: ReplayedAttempt[] = [];
  readonly #unrecorded: string[] = [];
  readonly #liveCalls = new Map<string, Promise<LiveAnswer>>();
  #recordedCalls = 0;
  #changed = Promise.withResolvers<void>();

  constructor(body: GraphBody, runBody: WorkflowBody, source: ReplaySource) {
    this.#body = body;
    this.#source = source;
    this.#strict = source.strict ?? true;
    this.#live = new Set(source.live);
    this.#recorded = indexJournal(source.entries);
    this.#entries = decodeEffectiveEntries(source.entries);
    this.#delivered = new Set(this.#recorded.deliveries.map(({ seq }) => seq));
    for (const entry of this.#entries) this.#index(entry);
    this.#guard = new OutsideGuard((called, place) => this.#reachedOut(called, place));
    const host: ExecutionHost = {
      ...source.host,
      onNodeRequest: () => this.#wake(),
      onNodeWaiting: () => {},
      nodeGuard: this.#guard,
      onRecordedCall: (command, name, call, input) => this.#countCall(command, name, call, input),
      ...(!this.#strict && {
        tolerates: (found) => {
          this.#report(violated(found, "graph"));
          return true;
        },
      }),
    };
    const start: StartNode = (...args) => this.#start(...args);
    const drive: WorkflowBody["drive"] = (execution, input, from) =>
      runGraph(execution, body, (from as Position | undefined) ?? beginGraph(execution, body, input), start);
    this.#execution = new Execution({ ...runBody, drive }, source.identity, this.#recorded, "inputs", host);
    this.#beginFork();
  }

  [Symbol.dispose](): void {
    this.#guard.close();
  }

  /** A fork starts from a checkpoint of its origin, with the messages delivered to the origin before it. */
  #beginFork(): void {
    const { started, steps } = this.#recorded;
    const forked = forkOriginOf(started.data);
    const [first] = steps.values();
    if (forked === undefined || first === undefined) return;
    this.#execution.restoredPosition = positionAfter(this.#body.channels, new Map(), first);
    for (const message of forked.delivered ?? []) this.#execution.deliveries.restoreMessage(message, started.at);
  }

  #index(entry: DecodedEntry): void {
    const { command } = entry;
    if (isOfType(entry, ...ATTEMPT_ENDS)) this.#ends.set(attemptKey(command, entry.data.attempt ?? 0), entry);
    const slash = command.lastIndexOf("/") + 1;
    if (slash === 0 || !this.#recorded.byCommand.has(command)) return;
    const prefix = command.slice(0, slash);
    if (isOfType(entry, "MessageSent"))
      return void this.#messages.set(prefix, [...(this.#messages.get(prefix) ?? []), entry]);
    const issued = this.#issued.get(prefix);
    if (issued === undefined) this.#issued.set(prefix, new Set([command]));
    else issued.add(command);
  }

  async run(): Promise<Replay> {
    const execution = this.#execution;
    // Cancelled before it started: no code has run.
    if (isNotStarted(this.#recorded.end)) return { status: "same", digest: `sha256:${this.#source.chain}` };
    execution.start();
    await this.#settle();
    for (const entry of this.#entries) {
      if (this.#isOver) break;
      await this.#take(entry);
    }
    if (!this.#isOver) this.#checkEnd();
    if (execution.stop !== undefined) this.#report(execution.stop);
    if (this.#found !== undefined) return { status: "mismatch", ...this.#found };
    const end = this.#recorded.end === undefined ? undefined : replayEndOf(execution);
    return {
      status: "same",
      digest: `sha256:${this.#source.chain}`,
      calls: { recorded: this.#recordedCalls, live: this.#liveCalls.size },
      ...(end !== undefined && { end }),
      ...(!this.#strict && { warnings: this.#warnings }),
    };
  }

  get #isOver(): boolean {
    return this.#found !== undefined || this.#execution.stop !== undefined;
  }

  #checkEnd(): void {
    const execution = this.#execution;
    if (execution.outcome !== undefined) for (const left of execution.commands.orphans()) this.#report(left);
    const ended = endDifference(execution, this.#recorded.end);
    if (ended !== undefined) this.#report(ended);
  }

  // ── differences ──

  #report(found: ReplayDifference): void {
    const { where, message, expected, actual, differs } = found;
    const kind = differs !== undefined && { differs };
    const difference = { where, message, expected, actual, ...kind, ...this.#placeOf(where), ...placeIn(found) };
    if (this.#strict) this.#found ??= difference;
    else this.#warnings.push(difference);
  }

  /** The step, node and attempt that a command belongs to. */
  #placeOf(where: string): Pick<ReplayDifference, "step" | "node" | "attempt"> {
    const step = /^step (\d+)$/.exec(where)?.[1];
    if (step !== undefined) return { step: Number(step) };
    const place = parseNodeCommand(where);
    if (place === undefined) return {};
    const node = this.#items.get(place.command)?.item.node;
    const attempt = place.attempt ?? this.#attempts.get(place.command)?.storedAttempt;
    return {
      step: place.step,
      ...(node !== undefined && { node }),
      // The journal counts attempts from 0, people from 1.
      ...(attempt !== undefined && { attempt: attempt + 1 }),
    };
  }

  #reportAttempt(
    { call, attempt, node }: ReplayedAttempt,
    what: string,
    expected: unknown,
    actual: unknown,
    differs?: Differs,
  ): void {
    const message = `Node ${node.name}, attempt ${attempt}, step ${call.step}: ${what}`;
    const kind = differs !== undefined && { differs };
    this.#report({ where: call.id, message, expected, actual, ...kind, step: call.step, node: node.name, attempt });
  }

  #reportStuck(attempt: ReplayedAttempt, what: string, actual: unknown): void {
    const [call] = this.#openCalls(attempt);
    if (call === undefined) return this.#reportAttempt(attempt, `the code ${what}`, undefined, actual);
    this.#reportAttempt(attempt, `the code waits for ${call}, a call that the journal does not have`, call, undefined);
  }

  #reachedOut(called: string, place: string): void {
    const scope = nodeOfCaller();
    const attempt = scope && this.#attempts.get(scope.command);
    if (attempt === undefined) return;
    const what = `the code called ${called} at ${place}, which a replay does not allow; wrap the call in ctx.run(), or declare effects: { recordable: false }`;
    this.#reportAttempt(attempt, what, called, "a call of ctx");
  }

  // ── nodes ──

  #start(...[execution, graph, step, position, item, state, freedAt]: Parameters<StartNode>): ReturnType<StartNode> {
    const started = startNode(execution, graph, step, position, item, state);
    if (started.index >= 0) {
      this.#items.set(started.command, { item, state, step, startedAt: freedAt });
      this.#begin(started.command, 0);
    }
    return started;
  }

  /** graph.P3, graph.P4 */
  #begin(id: string, attempt: number): void {
    const started = this.#items.get(id)!;
    const { item, state, step } = started;
    const node = this.#body.nodes.get(item.node) as GraphNode;
    const recorded = this.#ends.get(attemptKey(id, attempt));
    if (recorded === undefined || node.effects.recordable === false || this.#isOverridden(id)) return;
    const epoch = this.#recorded.runRetries.filter((one) => one.step === step && one.seq < recorded.seq).length;
    const key = nodeIdempotencyKey(this.#body, node, item, state.values);
    const place = { ...started, id, epoch, key };
    this.#pending.push(new ReplayedAttempt(this.#execution, this.#body, node, place, attempt));
  }

  /** fork.F6. The caller said what the node returned, so its code did not run. */
  #isOverridden(id: string): boolean {
    const { answers } = this.#recorded.started.data.forked ?? {};
    return answers !== undefined && Object.hasOwn(answers, id);
  }

  /** Runs until no code can continue, including the nodes that have just started. */
  async #settle(): Promise<void> {
    for (;;) {
      await drain(this.#source.timers);
      this.#takeRequests();
      if (this.#pending.length === 0) return;
      const pending = this.#pending;
      this.#pending = [];
      for (const attempt of pending) {
        this.#attempts.set(attempt.call.id, attempt);
        attempt.start(() => this.#wake());
      }
    }
  }

  /** Notes the commands that the journal does not have; the replay does not execute them. */
  #takeRequests(): void {
    const { requests } = this.#execution;
    this.#execution.requests = [];
    for (const request of requests) {
      if (request.kind === "stop-nodes")
        for (const { command } of request.nodes) this.#attempts.get(command)?.stop(request.error);
      else if (request.kind !== "operation" && "command" in request) this.#unrecorded.push(request.command);
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Waits for the code of a node; false after its time limit. */
  async #until(isDone: () => boolean, limitMs: () => number): Promise<boolean> {
    while (!isDone()) {
      let late = false;
      const changed = this.#changed.promise;
      const cancel = systemTimers.set(limitMs(), () => {
        late = true;
        this.#wake();
      });
      await changed;
      cancel();
      await this.#settle();
      if (late && !isDone()) return false;
    }
    return true;
  }

  // ── the journal ──

  async #take(entry: DecodedEntry): Promise<void> {
    await this.#untilIssued(entry);
    if (isOfType(entry, ...ATTEMPT_ENDS)) await this.#endAttempt(entry);
    else await this.#compareLive(entry);
    if (this.#isOver) return;
    const isDelivered = this.#delivered.has(entry.seq);
    if (isDelivered) {
      this.#source.onDelivery?.(entry);
      this.#execution.deliveries.deliver(entry);
    }
    if (isDelivered || this.#pending.length > 0) await this.#settle();
  }

  /** graph.P2 */
  async #untilIssued({ command, type }: DecodedEntry): Promise<void> {
    // Messages are stored with the result of the node, not as commands of its code.
    const place = type === "MessageSent" ? undefined : parseNodeCommand(command);
    const attempt = place?.inner === undefined ? undefined : this.#attempts.get(place.command);
    if (attempt === undefined || attempt.storedAttempt !== place?.attempt || this.#isIgnored(attempt)) return;
    const { commands } = this.#execution;
    const isIssued = (): boolean =>
      !commands.isUnmatched(command) || attempt.outcome !== undefined || this.#isIgnored(attempt);
    if (await this.#until(isIssued, () => this.#limitOf(attempt))) return;
    this.#reportStuck(attempt, `did not reach ${command}, which the journal has`, command);
  }

  #isIgnored(attempt: ReplayedAttempt): boolean {
    return this.#isOver || attempt.isStopped || this.#execution.cancellation.error !== undefined;
  }

  /** A call that the journal does not answer never settles, so code that waits for it cannot continue. */
  #limitOf(attempt: ReplayedAttempt): number {
    // A debugger may pause the code for any time.
    if (this.#source.onDelivery !== undefined && this.#openCalls(attempt).length === 0) return NO_LIMIT_MS;
    if (this.#openCalls(attempt).length > 0) return UNRECORDED_MS;
    return toMs(attempt.node.policy.timeout);
  }

  #openCalls({ scope }: ReplayedAttempt): readonly string[] {
    const { byCommand } = this.#recorded;
    const open = this.#execution.waits.all().filter(({ node, command }) => node === scope && !byCommand.has(command));
    return open.map(({ command, name }) => `${command} ${name}`);
  }

  async #endAttempt(entry: AttemptEndEntry): Promise<void> {
    const { command, type } = entry;
    const attempt = this.#attempts.get(command);
    if (attempt !== undefined && !this.#isIgnored(attempt) && !wasInterrupted(entry))
      await this.#compareEnd(attempt, entry);
    const sent = this.#execution.nodes?.end(command) ?? [];
    if (attempt !== undefined && type === "NodeCompleted" && !this.#isIgnored(attempt))
      this.#compareMessages(attempt, sent);
    this.#attempts.delete(command);
    if (type !== "NodeRetried" || !this.#items.has(command)) return;
    this.#execution.nodes?.repeatAt(command, entry.at + entry.data.delay);
    this.#begin(command, (entry.data.attempt ?? 0) + 1);
  }

  async #compareEnd(attempt: ReplayedAttempt, entry: AttemptEndEntry): Promise<void> {
    const isDone = (): boolean => attempt.outcome !== undefined || this.#isIgnored(attempt);
    const inTime = await this.#until(isDone, () => this.#limitOf(attempt));
    if (this.#isIgnored(attempt)) return;
    const then = recordedEnd(entry);
    const now = attempt.ended();
    if (!inTime || now === undefined)
      return this.#reportStuck(attempt, "did not end, but the journal has its end", valueOfEnd(then));
    const prefix = attempt.scope?.prefix ?? "";
    const made = this.#unrecorded.find((command) => command.startsWith(prefix));
    if (made !== undefined)
      this.#reportAttempt(attempt, `the code issued ${made}, which the journal does not have`, made, undefined);
    const { commands } = this.#execution;
    for (const left of this.#issued.get(prefix) ?? [])
      if (commands.isUnmatched(left))
        this.#reportAttempt(attempt, `the code did not issue ${left}, which the journal has`, undefined, left);
    if (isSameEnd(now, then)) return;
    this.#reportAttempt(attempt, differentEnd(now.type, then.type), valueOfEnd(now), valueOfEnd(then), "value");
  }

  /** The messages of a node are stored with its result. */
  #compareMessages(attempt: ReplayedAttempt, sent: readonly SentNodeMessage[]): void {
    const now = sent.map(({ command, destination, payload }) => `${command} ${destination} ${payload ?? ""}`);
    const then = (this.#messages.get(attempt.scope?.prefix ?? "") ?? []).map(
      ({ command, data }) => `${command} ${data.destination} ${entryData.encodeInput(data.payload) ?? ""}`,
    );
    if (encode(now) === encode(then)) return;
    const destinations = (list: readonly string[]): string => encode(list.map((one) => one.split(" ", 2)));
    const differs = destinations(now) === destinations(then) ? "input" : undefined;
    this.#reportAttempt(attempt, "the code sent other messages", now, then, differs);
  }

  // ── calls ──

  #countCall(command: string, name: string, call: OperationRequest["call"] | undefined, input: unknown): void {
    const place = parseNodeCommand(command);
    const node = place && this.#items.get(place.command)?.item.node;
    if (call === undefined || node === undefined || !this.#live.has(node)) this.#recordedCalls += 1;
    else this.#liveCalls.set(command, callLive(this.#source, command, name, call, input));
  }

  /** graph.P1. Compares the live answer with the recorded one. */
  async #compareLive(entry: DecodedEntry): Promise<void> {
    if (!isOfType(entry, "OperationCompleted", "OperationFailed")) return;
    const { command, type, data } = entry;
    const live = this.#liveCalls.get(command);
    if (live === undefined) return;
    const now = await live;
    const then = type === "OperationCompleted" ? data.result : data.error;
    const isSame = now.failed === (type === "OperationFailed") && now.hash === hashValue(then);
    if (isSame) return;
    const message = `The live call ${data.operationName} (${command}) ${now.failed ? "failed" : "answered"} differently`;
    this.#report({ where: command, message, expected: now.value, actual: then, differs: "value" });
  }
}

interface LiveAnswer {
  readonly failed: boolean;
  readonly value: unknown;
  readonly hash: string;
}

async function callLive(
  { identity }: ReplaySource,
  command: string,
  name: string,
  call: OperationRequest["call"],
  input: unknown,
): Promise<LiveAnswer> {
  const log = silentLogger;
  const op: OperationContext = {
    runId: identity.id,
    attempt: 1,
    execution: 1,
    idempotencyKey: idempotencyKeyOf(identity.id, identity.generation, command),
    abortSignal: new AbortController().signal,
    log,
    heartbeat: () => {},
    emit: () => {},
  };
  const given = input === undefined ? undefined : decode(encode(input));
  try {
    const value: unknown = await callInStep(name, () => call(op, given));
    return { failed: false, value, hash: hashValue(value) };
  } catch (error) {
    return { failed: true, value: error, hash: hashValue(error) };
  }
}

function attemptKey(command: string, attempt: number): string {
  return `${command}#${attempt}`;
}

/** The fields that the difference already has. */
function placeIn({ step, node, attempt }: ReplayDifference): Pick<ReplayDifference, "step" | "node" | "attempt"> {
  return {
    ...(step !== undefined && { step }),
    ...(node !== undefined && { node }),
    ...(attempt !== undefined && { attempt }),
  };
}

function differentEnd(now: string, then: string): string {
  if (now === then)
    return now === "NodeCompleted" ? "the code returned another result" : "the code failed with another error";
  const words: Readonly<Record<string, string>> = {
    NodeCompleted: "completed",
    NodeFailed: "failed its last attempt",
    NodeRetried: "failed and was retried",
  };
  return `the code ${words[now]}, but in the journal it ${words[then]}`;
}
