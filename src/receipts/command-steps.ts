// Command steps: the records of the commands that code requests through `ctx`. A workflow has one of these, a graph one for each
// attempt of a node.
//
// command-steps.C1. A command has one record, made of the entry that requests it and the one that ends it. The first end counts.
// command-steps.C2. A settlement goes to every wait on its promise, also to later ones, as in the run itself: which of two waits
//   the entry names depends on when it arrived.
// command-steps.C3. A wait for a signal has no record unless it timed out: the signal has one. Whether there was a wait depends on
//   when the signal arrived.

import { stableCommandOf } from "../kernel/index.ts";
import type { PlainEntry } from "./journal-tree.ts";
import type { MemberTexts } from "./member-texts.ts";
import { indexIn, stringIn, type MemberKeys, type StepKind, type StepRecord } from "./steps.ts";

type EmitCommand = (record: StepRecord, index: number) => void;

interface OpenStep {
  readonly kind: StepKind;
  /** Without the epoch and the attempt of its node. */
  readonly command: string;
  readonly index: number;
  readonly name?: string | undefined;
  readonly in?: string | undefined;
  /** What the code rejects the promise of another run with. */
  readonly error?: string | undefined;
  /** Of a wait that rejects when the run is canceled. */
  readonly isShielded?: boolean;
  readonly isReceive?: boolean;
  end?: string;
}

/** The text of a value or of an error. */
type Settlement = { readonly value: string | undefined } | { readonly error: string | undefined };

function settlementIn(type: string, members: MemberTexts): Settlement {
  return type === "PromiseRejected" ? { error: members.get("error") } : { value: members.get("value") };
}

interface PortWait {
  readonly step: OpenStep;
  settle(settlement: Settlement): void;
}

/** command-steps.C2. The promises of one run, by id. */
export class PromiseSettlements {
  readonly #settled = new Map<string, Settlement>();
  readonly #waits = new Map<string, Set<PortWait>>();

  find(port: string): Settlement | undefined {
    return this.#settled.get(port);
  }

  wait(port: string, wait: PortWait): void {
    const waits = this.#waits.get(port);
    if (waits === undefined) this.#waits.set(port, new Set([wait]));
    else waits.add(wait);
  }

  leave(port: string, step: OpenStep): void {
    const waits = this.#waits.get(port);
    for (const wait of waits ?? []) if (wait.step === step) waits?.delete(wait);
    if (waits?.size === 0) this.#waits.delete(port);
  }

  /** With the data of the entry that settles a promise; the first one counts. */
  settleWith(type: string, members: MemberTexts): true {
    const port = stringIn(members, "promiseId") ?? "";
    if (!this.#settled.has(port)) this.#settle(port, settlementIn(type, members));
    return true;
  }

  #settle(port: string, settlement: Settlement): void {
    this.#settled.set(port, settlement);
    const waits = this.#waits.get(port) ?? [];
    this.#waits.delete(port);
    for (const wait of waits) wait.settle(settlement);
  }

  /** The run is canceled: its waits reject, except for shielded ones. */
  cancel(): void {
    for (const [port, waits] of this.#waits) {
      for (const wait of waits) if (wait.step.isShielded !== true) waits.delete(wait);
      if (waits.size === 0) this.#waits.delete(port);
    }
  }
}

export class CommandSteps {
  readonly #keys: MemberKeys;
  readonly #promises: PromiseSettlements;
  readonly #emit: EmitCommand;
  /** By command as recorded. */
  readonly #open = new Map<string, OpenStep>();
  readonly #childMessages = new Map<string, number>();

  constructor(keys: MemberKeys, promises: PromiseSettlements, emit: EmitCommand) {
    this.#keys = keys;
    this.#promises = promises;
    this.#emit = emit;
  }

  /** False: not an entry of a command. */
  add({ type, command }: Pick<PlainEntry, "type" | "command">, members: MemberTexts): boolean {
    switch (type) {
      case "TaskScheduled":
        this.#begin("task", command, members, "taskType", "input");
        return true;
      case "ChildWorkflowInitiated":
        this.#begin("child", command, members, "childExecutionName", "input");
        return true;
      case "TimerStarted":
        this.#begin("timer", command, members, "timerId", "ms");
        return true;
      case "SettleRequested":
        this.#begin("settle", command, members, "promiseId", "value");
        return true;
      case "PromiseCreated":
        this.#wait(command, members);
        return true;
      case "OperationCompleted":
      case "OperationFailed":
        this.#begin("operation", command, members, "operationName", "input");
        this.#end(
          command,
          type === "OperationCompleted" ? { out: members.get("result") } : { error: members.get("error") },
        );
        return true;
      case "TaskCompleted":
        this.#end(command, { out: members.get("result") });
        return true;
      case "ChildWorkflowCompleted":
        this.#end(command, { out: members.get("output") });
        return true;
      case "TaskFailed":
      case "ChildWorkflowFailed":
        this.#end(command, { error: members.get("error") });
        return true;
      case "TaskCancelled":
      case "TimerCancelled":
        this.#end(command, { end: "cancelled" });
        return true;
      case "TaskCancelRequested": {
        // The task finishes, so that it can be undone; the code has its end already.
        const step = this.#open.get(command);
        if (step !== undefined) step.end = "cancelled";
        return true;
      }
      case "TimerFired":
        this.#end(command, { end: "fired" });
        return true;
      case "PromiseTimedOut":
        this.#end(command, { end: "timed-out" });
        return true;
      case "SettleAnswered":
        this.#end(command, { end: settledAs(stringIn(members, "status")) });
        return true;
      case "StateSet":
      case "StateCleared":
        this.#begin("state", command, members, "key");
        this.#end(command, type === "StateSet" ? { out: members.get("value") } : { end: "cleared" });
        return true;
      case "MessageSent":
        this.#begin("message", command, members, "destination", "payload");
        this.#end(command, {});
        return true;
      case "ChildSignalled":
      case "ChildCancelRequested":
        this.#sendToChild(type, command, members);
        return true;
      case "SignalReceived":
        // command-steps.C3. The signal itself is a record of the run.
        this.#open.delete(command);
        return false;
      default:
        return false;
    }
  }

  #begin(kind: StepKind, raw: string, members: MemberTexts, name: string, input?: string): void {
    const command = stableCommandOf(raw);
    this.#open.set(raw, {
      kind,
      command,
      index: indexIn(members),
      name: stringIn(members, name),
      in: input === undefined ? undefined : this.#keys.of(members, input, command, "in"),
      error: kind === "settle" ? this.#keys.of(members, "error", command, "error") : undefined,
    });
  }

  #wait(raw: string, members: MemberTexts): void {
    const port = stringIn(members, "promiseId");
    const isReceive = members.has("receives");
    const isShielded = members.has("shielded");
    const index = indexIn(members);
    const step: OpenStep = { kind: "promise", command: stableCommandOf(raw), index, name: port, isReceive, isShielded };
    this.#open.set(raw, step);
    if (isReceive || port === undefined) return;
    const settle = (settlement: Settlement): void =>
      this.#end(raw, "error" in settlement ? { error: settlement.error } : { out: settlement.value });
    const settled = this.#promises.find(port);
    if (settled === undefined) this.#promises.wait(port, { step, settle });
    else settle(settled);
  }

  /** command-steps.C1 */
  #end(
    raw: string,
    ended: { readonly out?: string | undefined; readonly error?: string | undefined; end?: string },
  ): void {
    const step = this.#open.get(raw);
    if (step === undefined) return;
    this.#open.delete(raw);
    this.#emitStep(step, ended.out, ended.error, ended.end);
  }

  #emitStep(step: OpenStep, out?: string, error?: string, end = step.end): void {
    const { kind, command, index, name } = step;
    if (kind === "promise" && name !== undefined && step.isReceive !== true) this.#promises.leave(name, step);
    const record = {
      command,
      end,
      error: error === undefined ? step.error : this.#keys.ofText(error, command, "error"),
      in: step.in,
      kind,
      name,
      out: out === undefined ? undefined : this.#keys.ofText(out, command, "out"),
    };
    this.#emit(record, index);
  }

  #sendToChild(type: "ChildSignalled" | "ChildCancelRequested", raw: string, members: MemberTexts): void {
    const n = this.#childMessages.get(raw) ?? 0;
    this.#childMessages.set(raw, n + 1);
    const isSignal = type === "ChildSignalled";
    const command = `${stableCommandOf(raw)}/${isSignal ? "Signal" : "Cancel"}(${n})`;
    const record: StepRecord = {
      command,
      kind: isSignal ? "child-signal" : "child-cancel",
      name: stringIn(members, "name"),
      in: this.#keys.of(members, "value", command, "in"),
    };
    this.#emit(record, indexIn(members));
  }

  /** Emits what has not ended. */
  finish(): void {
    for (const step of this.#open.values()) if (step.isReceive !== true) this.#emitStep(step);
    this.#open.clear();
  }

  /** Forgets what has not ended: another attempt takes its place. */
  drop(): void {
    for (const step of this.#open.values())
      if (step.kind === "promise" && step.name !== undefined) this.#promises.leave(step.name, step);
    this.#open.clear();
  }
}

/** A retried run may settle the same promise again: the other run has one value in both cases. */
function settledAs(status: string | undefined): string {
  return status === "repeated" ? "accepted" : (status ?? "accepted");
}
