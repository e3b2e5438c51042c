// Replay of a graph: its nodes are run again, with everything their code asks for from the journal.
//
// P1. Nothing outside is called and nothing is written. Calls of `ctx` are answered from the journal; a node that reaches
//     for the network past `ctx` is caught (OutsideGuard). Only calls of nodes named in `live` are made, and compared.
// P2. The journal's order is the order: an entry is taken when the code of its node has asked for it, so that code which
//     waits for something of its own sees what it saw then.
// P3. Every attempt the journal has an end of is run, each with its own recordings (G7), and must end as it did then. What
//     goes on is what was recorded: one difference does not become many.
// P4. A node that is not `recordable` is not run: its recorded result counts (G8). So does an end that was no work of the
//     node's code, such as a timeout.

import { decode, encode, RepriseError, systemTimers, toMs } from "../base/index.ts";
import { findJournalFault, forkedOf, isTerminal } from "../kernel/index.ts";
import {
  callInStep,
  countedEntries,
  drain,
  endDifference,
  entryData,
  Execution,
  idempotencyKeyOf,
  indexJournal,
  nodeOfCaller,
  OutsideGuard,
  replayEndOf,
  type OperationAsk,
  type OperationContext,
  type Recorded,
  type RecordedEntry,
  type Replay,
  type ReplayDifference,
  type ReplayedPast,
  type SentByNode,
  type WorkflowBody,
} from "../workflow/index.ts";
import type { GraphBody, GraphNode } from "./definition.ts";
import { begin, runGraph, type Position, type StartNode } from "./interpreter.ts";
import { keyOfItem } from "./key-of-item.ts";
import { DEFAULT_NODE_TIMEOUT_MS, startNode, type Place } from "./node-run.ts";
import { damageDifference } from "./replay-damage.ts";
import { isSameEnd, recordedEnd, ReplayedAttempt, shownEnd, wasInterrupted } from "./replayed-attempt.ts";
import { hashOf, placeOfCommand } from "./recorded-io.ts";
import { positionAfter } from "./restore.ts";

/** How long a node's code may wait for a call the journal has no answer to before that is what is wrong with it. */
const UNRECORDED_MS = 3_000;

export async function replayGraph(body: GraphBody, runBody: WorkflowBody, past: ReplayedPast): Promise<Replay> {
  const { entries, chain, live = [] } = past;
  for (const name of live)
    if (!body.nodes.has(name))
      throw new RepriseError(
        "BAD_OPTIONS",
        `replay: live names ${name}, which is no node of graph ${body.name}; there are: ${[...body.nodes.keys()].join(", ")}.`,
      );
  const fault = findJournalFault(entries, { head: entries.length, chain });
  if (fault !== undefined) return { status: "mismatch", ...damageDifference(fault, entries) };
  using replay = new GraphReplay(body, runBody, past);
  return await replay.run();
}

class GraphReplay {
  readonly #body: GraphBody;
  readonly #past: ReplayedPast;
  readonly #strict: boolean;
  readonly #live: ReadonlySet<string>;
  readonly #recorded: Recorded;
  readonly #entries: readonly RecordedEntry[];
  readonly #delivered: ReadonlySet<number>;
  readonly #execution: Execution;
  readonly #guard: OutsideGuard;
  readonly #warnings: ReplayDifference[] = [];
  #found: ReplayDifference | undefined;
  /** Ends of attempts the journal has, by command and attempt. */
  readonly #ends = new Map<string, RecordedEntry>();
  /** What the journal has of each attempt's code, by the prefix of its commands. */
  readonly #asked = new Map<string, Set<string>>();
  readonly #messages = new Map<string, readonly RecordedEntry[]>();
  /** Items set going, by command; those whose code is run again have an attempt. */
  readonly #items = new Map<string, Omit<Place, "id" | "key">>();
  readonly #attempts = new Map<string, ReplayedAttempt>();
  #pending: ReplayedAttempt[] = [];
  readonly #unrecorded: string[] = [];
  readonly #liveCalls = new Map<string, Promise<LiveAnswer>>();
  #served = 0;
  #changed = Promise.withResolvers<void>();

  constructor(body: GraphBody, runBody: WorkflowBody, past: ReplayedPast) {
    this.#body = body;
    this.#past = past;
    this.#strict = past.strict ?? true;
    this.#live = new Set(past.live);
    this.#recorded = indexJournal(past.entries);
    this.#entries = countedEntries(past.entries);
    this.#delivered = new Set(this.#recorded.deliveries.map(({ seq }) => seq));
    for (const entry of this.#entries) this.#index(entry);
    this.#guard = new OutsideGuard((called, place) => this.#reachedOut(called, place));
    const host = {
      ...past.host,
      asked: () => this.#wake(),
      nodeWaits: () => {},
      nodeGuard: this.#guard,
      served: (command: string, name: string, call: OperationAsk["call"] | undefined, input: unknown) =>
        this.#serve(command, name, call, input),
      ...(!this.#strict && {
        tolerates: (found: ReplayDifference) => {
          this.#report(found);
          return true;
        },
      }),
    };
    const start: StartNode = (...args) => this.#start(...args);
    const drive: WorkflowBody["drive"] = (execution, input, from) =>
      runGraph(execution, body, (from as Position | undefined) ?? begin(execution, body, input), start);
    this.#execution = new Execution({ ...runBody, drive }, past.facts, this.#recorded, "inputs", host);
    this.#beginFork();
  }

  [Symbol.dispose](): void {
    this.#guard.close();
  }

  /** A fork begins with the checkpoint it was made from, and with what the run it comes from had been told by then. */
  #beginFork(): void {
    const { started, steps } = this.#recorded;
    const forked = forkedOf(started.data);
    const [first] = steps.values();
    if (forked === undefined || first === undefined) return;
    this.#execution.from = positionAfter(this.#body.channels, new Map(), first);
    for (const { type, data } of forked.told ?? []) this.#execution.tell(type, data, started.at);
  }

  #index(entry: RecordedEntry): void {
    const { type, command, data } = entry;
    if (type === "NodeRetried" || type === "NodeCompleted" || type === "NodeFailed")
      this.#ends.set(attemptKey(command, Number(data["attempt"] ?? 0)), entry);
    const slash = command.lastIndexOf("/") + 1;
    if (slash === 0 || !this.#recorded.byCommand.has(command)) return;
    const prefix = command.slice(0, slash);
    if (type === "MessageSent") return void this.#messages.set(prefix, [...(this.#messages.get(prefix) ?? []), entry]);
    const asked = this.#asked.get(prefix);
    if (asked === undefined) this.#asked.set(prefix, new Set([command]));
    else asked.add(command);
  }

  async run(): Promise<Replay> {
    const execution = this.#execution;
    // Cancelled before it began: there is nothing the code did.
    if (this.#recorded.end?.data["begun"] === false) return { status: "same", digest: `sha256:${this.#past.chain}` };
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
      digest: `sha256:${this.#past.chain}`,
      calls: { served: this.#served, live: this.#liveCalls.size },
      ...(end !== undefined && { end }),
      ...(!this.#strict && { warnings: this.#warnings }),
    };
  }

  get #isOver(): boolean {
    return this.#found !== undefined || this.#execution.stop !== undefined;
  }

  #checkEnd(): void {
    const execution = this.#execution;
    if (execution.outcome !== undefined) for (const left of execution.commands.leftovers()) this.#report(left);
    const ended = endDifference(execution, this.#recorded.end);
    if (ended !== undefined) this.#report(ended);
  }

  // ── what was found ──

  #report(found: ReplayDifference): void {
    const { where, message, expected, actual } = found;
    const difference = { where, message, expected, actual, ...this.#placeOf(where), ...placeIn(found) };
    if (this.#strict) this.#found ??= difference;
    else this.#warnings.push(difference);
  }

  /** The step, node and attempt a command or step names. */
  #placeOf(where: string): Pick<ReplayDifference, "step" | "node" | "attempt"> {
    const step = /^step (\d+)$/.exec(where)?.[1];
    if (step !== undefined) return { step: Number(step) };
    const place = placeOfCommand(where);
    if (place === undefined) return {};
    const node = this.#items.get(place.command)?.item.node;
    const attempt = place.attempt ?? this.#attempts.get(place.command)?.attempt;
    return { step: place.step, ...(node !== undefined && { node }), ...(attempt !== undefined && { attempt }) };
  }

  #reportAttempt({ place, attempt, node }: ReplayedAttempt, what: string, expected: unknown, actual: unknown): void {
    const message = `Node ${node.name}, attempt ${attempt + 1}, step ${place.step}: ${what}`;
    this.#report({ where: place.id, message, expected, actual, step: place.step, node: node.name, attempt });
  }

  #reportStuck(attempt: ReplayedAttempt, what: string, actual: unknown): void {
    const [call] = this.#openCalls(attempt);
    if (call === undefined) return this.#reportAttempt(attempt, `the code ${what}`, undefined, actual);
    this.#reportAttempt(attempt, `the code waits for ${call}, a call nobody recorded`, call, undefined);
  }

  #reachedOut(called: string, place: string): void {
    const scope = nodeOfCaller();
    const attempt = scope && this.#attempts.get(scope.command);
    if (attempt === undefined) return;
    const what = `the code called ${called} at ${place}, which a replay must not; put it into ctx.run(), or declare effects: { recordable: false }`;
    this.#reportAttempt(attempt, what, called, "a call of ctx");
  }

  // ── nodes ──

  #start(...[execution, graph, step, position, item, state, freedAt]: Parameters<StartNode>): ReturnType<StartNode> {
    const started = startNode(execution, graph, step, position, item, state);
    if (started.index >= 0) {
      this.#items.set(started.command, { item, state, step, begunAt: freedAt });
      this.#begin(started.command, 0);
    }
    return started;
  }

  /** P3, P4 */
  #begin(id: string, attempt: number): void {
    const started = this.#items.get(id)!;
    const { item, state, step } = started;
    const node = this.#body.nodes.get(item.node) as GraphNode;
    const recorded = this.#ends.get(attemptKey(id, attempt));
    if (recorded === undefined || node.effects.recordable === false) return;
    const life = this.#recorded.lives.filter((one) => one.step === step && one.seq < recorded.seq).length;
    const key = keyOfItem(this.#body, node, item, state.values);
    const place = { ...started, id, life, key };
    this.#pending.push(new ReplayedAttempt(this.#execution, this.#body, node, place, attempt));
  }

  /** Everything the code can do is done, that of nodes that have just been set going included. */
  async #settle(): Promise<void> {
    for (;;) {
      await drain(this.#past.timers);
      this.#takeAsks();
      if (this.#pending.length === 0) return;
      const pending = this.#pending;
      this.#pending = [];
      for (const attempt of pending) {
        this.#attempts.set(attempt.place.id, attempt);
        attempt.start(() => this.#wake());
      }
    }
  }

  /** What the journal does not have is not done. */
  #takeAsks(): void {
    const { asks } = this.#execution;
    this.#execution.asks = [];
    for (const ask of asks) {
      if (ask.ask === "stop-nodes") for (const { command } of ask.nodes) this.#attempts.get(command)?.stop(ask.error);
      else if (ask.ask !== "operation" && "command" in ask) this.#unrecorded.push(ask.command);
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Waits for the code of a node; false when it takes longer than it may. */
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

  async #take(entry: RecordedEntry): Promise<void> {
    await this.#untilAsked(entry);
    const { type, command, data, at, seq } = entry;
    const place = placeOfCommand(command);
    if (place !== undefined && place.own === undefined) await this.#endAttempt(entry);
    else await this.#compareLive(entry);
    if (this.#isOver) return;
    const isDelivered = this.#delivered.has(seq);
    if (isDelivered) this.#execution.deliver(type, command, data, at);
    if (isDelivered || this.#pending.length > 0) await this.#settle();
  }

  /** P2 */
  async #untilAsked({ command, type }: RecordedEntry): Promise<void> {
    // Messages are no commands of a node's code: they come with its result.
    const place = type === "MessageSent" ? undefined : placeOfCommand(command);
    const attempt = place?.own === undefined ? undefined : this.#attempts.get(place.command);
    if (attempt === undefined || attempt.attempt !== place?.attempt || this.#isLeftAlone(attempt)) return;
    const { commands } = this.#execution;
    const isAsked = (): boolean =>
      !commands.isUnmatched(command) || attempt.outcome !== undefined || this.#isLeftAlone(attempt);
    if (await this.#until(isAsked, () => this.#limitOf(attempt))) return;
    this.#reportStuck(attempt, `did not come to ${command}, which the journal has`, command);
  }

  #isLeftAlone(attempt: ReplayedAttempt): boolean {
    return this.#isOver || attempt.isStopped || this.#execution.cancellation.error !== undefined;
  }

  /** Calls the journal has no answer to never come; code that waits for one does not go on. */
  #limitOf(attempt: ReplayedAttempt): number {
    if (this.#openCalls(attempt).length > 0) return UNRECORDED_MS;
    return toMs(attempt.node.policy.timeout ?? DEFAULT_NODE_TIMEOUT_MS);
  }

  #openCalls({ scope }: ReplayedAttempt): readonly string[] {
    const { byCommand } = this.#recorded;
    const open = this.#execution.waits.all().filter(({ node, command }) => node === scope && !byCommand.has(command));
    return open.map(({ command, name }) => `${command} ${name}`);
  }

  async #endAttempt(entry: RecordedEntry): Promise<void> {
    const { command, type } = entry;
    const attempt = this.#attempts.get(command);
    if (attempt !== undefined && !this.#isLeftAlone(attempt) && !wasInterrupted(entry))
      await this.#compareEnd(attempt, entry);
    const sent = this.#execution.nodes?.end(command) ?? [];
    if (attempt !== undefined && type === "NodeCompleted" && !this.#isLeftAlone(attempt))
      this.#compareMessages(attempt, sent);
    this.#attempts.delete(command);
    if (type !== "NodeRetried" || !this.#items.has(command)) return;
    this.#execution.nodes?.repeatAt(command, entry.at + Number(entry.data["delay"]));
    this.#begin(command, Number(entry.data["attempt"] ?? 0) + 1);
  }

  async #compareEnd(attempt: ReplayedAttempt, entry: RecordedEntry): Promise<void> {
    const isDone = (): boolean => attempt.outcome !== undefined || this.#isLeftAlone(attempt);
    const inTime = await this.#until(isDone, () => this.#limitOf(attempt));
    if (this.#isLeftAlone(attempt)) return;
    const then = recordedEnd(entry);
    const now = attempt.ended();
    if (!inTime || now === undefined)
      return this.#reportStuck(attempt, "did not end, the journal has its end", shownEnd(then));
    const prefix = attempt.scope?.prefix ?? "";
    const made = this.#unrecorded.find((command) => command.startsWith(prefix));
    if (made !== undefined)
      this.#reportAttempt(attempt, `the code asked for ${made}, which nobody recorded`, made, undefined);
    const { commands } = this.#execution;
    for (const left of this.#asked.get(prefix) ?? [])
      if (commands.isUnmatched(left))
        this.#reportAttempt(attempt, `the code did not ask for ${left}, which the journal has`, undefined, left);
    if (isSameEnd(now, then)) return;
    this.#reportAttempt(attempt, differentEnd(now.type, then.type), shownEnd(now), shownEnd(then));
  }

  /** What its code has sent stands beside its result. */
  #compareMessages(attempt: ReplayedAttempt, sent: readonly SentByNode[]): void {
    const now = sent.map(({ command, destination, payload }) => `${command} ${destination} ${payload ?? ""}`);
    const then = (this.#messages.get(attempt.scope?.prefix ?? "") ?? []).map(
      ({ command, data }) =>
        `${command} ${String(data["destination"])} ${entryData.encodeInput(data["payload"]) ?? ""}`,
    );
    if (encode(now) !== encode(then)) this.#reportAttempt(attempt, "other messages sent", now, then);
  }

  // ── calls ──

  #serve(command: string, name: string, call: OperationAsk["call"] | undefined, input: unknown): void {
    const place = placeOfCommand(command);
    const node = place && this.#items.get(place.command)?.item.node;
    if (call === undefined || node === undefined || !this.#live.has(node)) this.#served += 1;
    else this.#liveCalls.set(command, callLive(this.#past, command, name, call, input));
  }

  /** P1. The answer of today against the one recorded. */
  async #compareLive(entry: RecordedEntry): Promise<void> {
    const { command, type, data } = entry;
    const live = isTerminal(type) ? this.#liveCalls.get(command) : undefined;
    if (live === undefined) return;
    const now = await live;
    const then = type === "OperationCompleted" ? data["result"] : data["error"];
    const isSame = now.failed === (type === "OperationFailed") && now.hash === hashOf(then);
    if (isSame) return;
    const message = `The live call ${String(data["operationName"])} (${command}) ${now.failed ? "failed" : "answered"} differently`;
    this.#report({ where: command, message, expected: now.value, actual: then });
  }
}

interface LiveAnswer {
  readonly failed: boolean;
  readonly value: unknown;
  readonly hash: string;
}

async function callLive(
  { facts }: ReplayedPast,
  command: string,
  name: string,
  call: OperationAsk["call"],
  input: unknown,
): Promise<LiveAnswer> {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const op: OperationContext = {
    runId: facts.id,
    attempt: 0,
    idempotencyKey: idempotencyKeyOf(facts.id, facts.generation, command),
    abortSignal: new AbortController().signal,
    log,
    heartbeat: () => {},
    emit: () => {},
  };
  const given = input === undefined ? undefined : decode(encode(input));
  try {
    const value: unknown = await callInStep(name, () => call(op, given));
    return { failed: false, value, hash: hashOf(value) };
  } catch (error) {
    return { failed: true, value: error, hash: hashOf(error) };
  }
}

function attemptKey(command: string, attempt: number): string {
  return `${command}#${attempt}`;
}

/** Of what is known already. */
function placeIn({ step, node, attempt }: ReplayDifference): Pick<ReplayDifference, "step" | "node" | "attempt"> {
  return {
    ...(step !== undefined && { step }),
    ...(node !== undefined && { node }),
    ...(attempt !== undefined && { attempt }),
  };
}

function differentEnd(now: string, then: string): string {
  if (now === then) return now === "NodeCompleted" ? "another result" : "another failure";
  const words: Readonly<Record<string, string>> = {
    NodeCompleted: "completed",
    NodeFailed: "failed for good",
    NodeRetried: "failed and was tried again",
  };
  return `the code ${words[now]}, in the journal it ${words[then]}`;
}
