// Graph steps: the records of a graph's run. Those of step 3 are: for each item its commands by index, then its node; then `Step(3)`.
//
// steps-graph.G1. Of the commands of a node those of one attempt count: the one that ended the node, or the last one while it has not
//   ended. Their records do not name the attempt.
// steps-graph.G2. A command that has not ended when its node does has no end in its record, even if the journal has one later:
//   nothing waited for it.

import { isCancel, isInNode, nodeCommandOf, nodeItemOf } from "../kernel/index.ts";
import type { PlainEntry } from "./journal-tree.ts";
import { CommandSteps, PromiseSettlements } from "./command-steps.ts";
import { itemTexts, memberTexts, type MemberTexts } from "./member-texts.ts";
import { MessageSteps } from "./message-steps.ts";
import {
  LAST,
  numberIn,
  stringIn,
  type EmitStep,
  type MemberKeys,
  type StepPlace,
  type StepReader,
  type StepRecord,
} from "./steps.ts";

/** The commands of one attempt of a node. */
interface Attempt {
  readonly number: number;
  readonly steps: CommandSteps;
  /** Ended commands, until the attempt counts. */
  readonly records: (readonly [record: StepRecord, index: number])[];
}

export class GraphSteps implements StepReader {
  readonly #keys: MemberKeys;
  readonly #emit: EmitStep;
  readonly #promises = new PromiseSettlements();
  readonly #messages: MessageSteps;
  /** The last attempt of each node that has not ended, by the node's command. */
  readonly #attempts = new Map<string, Attempt>();

  constructor(keys: MemberKeys, emit: EmitStep) {
    this.#keys = keys;
    this.#emit = emit;
    this.#messages = new MessageSteps(keys, emit);
  }

  add(entry: PlainEntry, members: MemberTexts): boolean {
    const { type, command } = entry;
    if (isCancel(type)) this.#promises.cancel();
    switch (type) {
      case "RunStarted":
        this.#takeDelivered(members);
        return true;
      case "PromiseResolved":
      case "PromiseRejected":
        return this.#promises.settleWith(type, members);
      case "NodeCompleted":
      case "NodeFailed":
        this.#endNode(command, members);
        return true;
      case "NodeRetried":
        this.#attempts.get(command)?.steps.drop();
        this.#attempts.delete(command);
        return true;
      case "StepCommitted":
        this.#commitStep(members);
        return true;
      default:
        return this.#addOther(entry, members);
    }
  }

  #addOther(entry: PlainEntry, members: MemberTexts): boolean {
    if (!isInNode(entry.command)) return this.#messages.add(entry, members);
    const attempt = this.#attemptOf(entry.command);
    return attempt === undefined || attempt.steps.add(entry, members);
  }

  /** The messages that the origin of a fork had received. */
  #takeDelivered(members: MemberTexts): void {
    const forked = members.get("forked");
    const delivered = forked === undefined ? undefined : memberTexts(forked).get("told");
    for (const text of delivered === undefined ? [] : itemTexts(delivered)) {
      const message = memberTexts(text);
      const type = stringIn(message, "type") ?? "";
      const data = message.get("data");
      if (data === undefined || !type.startsWith("Promise")) continue;
      this.#promises.settleWith(type, memberTexts(data));
    }
  }

  /** steps-graph.G1. Undefined: the command belongs to an earlier attempt. */
  #attemptOf(command: string): Attempt | undefined {
    const node = nodeCommandOf(command);
    const number = attemptIn(command);
    const last = this.#attempts.get(node);
    if (last !== undefined && number <= last.number) return number === last.number ? last : undefined;
    last?.steps.drop();
    const records: Attempt["records"] = [];
    const steps = new CommandSteps(this.#keys, this.#promises, (record, index) => records.push([record, index]));
    const attempt = { number, steps, records };
    this.#attempts.set(node, attempt);
    return attempt;
  }

  #endNode(command: string, members: MemberTexts): void {
    const last = this.#attempts.get(command);
    this.#attempts.delete(command);
    // steps-graph.G2
    if (last !== undefined && last.number === (numberIn(members, "attempt") ?? 0)) this.#emitAttempt(command, last);
    else last?.steps.drop();
    const record: StepRecord = {
      command,
      kind: "node",
      name: stringIn(members, "operationName"),
      error: this.#keys.of(members, "error", command, "error"),
      out: this.#keys.of(members, "result", command, "out"),
    };
    this.#emit(record, this.#placeOf(command, LAST));
  }

  #emitAttempt(node: string, { steps, records }: Attempt): void {
    steps.finish();
    for (const [record, index] of records) this.#emit(record, this.#placeOf(node, index));
  }

  #placeOf(node: string, index: number): StepPlace {
    const item = nodeItemOf(node);
    return item === undefined ? this.#messages.nextPlace() : [item.step, item.position, index];
  }

  #commitStep(members: MemberTexts): void {
    const step = numberIn(members, "step") ?? 0;
    const command = `Step(${step})`;
    // Not the key of the checkpoint: it contains the id of the run.
    const parts = ["delta", "frontier", "waiting"].flatMap((name) => {
      const text = members.get(name);
      return text === undefined ? [] : [`"${name}":${text}`];
    });
    const out = this.#keys.ofText(`{${parts.join(",")}}`, command, "out");
    this.#emit({ command, kind: "step", name: stringIn(members, "label"), out }, [step, LAST, 0]);
  }

  finish(): void {
    for (const [node, attempt] of this.#attempts) this.#emitAttempt(node, attempt);
    this.#attempts.clear();
    this.#messages.finish();
  }
}

/** The 1 of `Node(3.0)~2#1/Task(0)`. */
function attemptIn(command: string): number {
  return Number(command.slice(command.indexOf("#") + 1, command.indexOf("/")));
}
