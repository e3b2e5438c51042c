// FlowAnswers: what a fork of a flow answers for its nodes without executing them (fork.F6, fork.F7).
//
// flow-answers.A1. A told answer belongs to one node, or to one item of a spread. It is given when the node would be executed.
// flow-answers.A2. With recorded effects, an action, a call or an item that gets the same values as in the origin ends as it did
//   there. Only entries up to `head` count, so every worker finds the same answers. Derived nodes call nothing: they run.

import { encode, RepriseError } from "../base/index.ts";
import { commandForkOriginOf, decodeData, errorOf, type CommandForkOrigin, type Store } from "../kernel/index.ts";
import {
  decodeInputs,
  neededValues,
  RecordedNodes,
  SKIPPED,
  SPREAD_SUFFIX,
  valuesFrom,
  type FlowBody,
  type NodeOutcome,
  type NodeRef,
} from "../flow/index.ts";
import type { NodeArguments } from "./node-arguments.ts";

/** `unrecorded`: the origin did not end the node with these values. */
export type FlowAnswer = NodeOutcome | "execute" | "unrecorded";

export class FlowAnswers {
  readonly #store: Store;
  readonly #body: FlowBody;
  readonly #origin: CommandForkOrigin;
  #recorded: Promise<RecordedNodes> | undefined;

  /** Undefined: the run is not a fork, or executes all its nodes. */
  static of(store: Store, body: FlowBody, started: string | undefined): FlowAnswers | undefined {
    // A text search is enough for most runs.
    if (started?.includes('"forked"') !== true) return undefined;
    const origin = commandForkOriginOf(decodeData("RunStarted", started));
    if (origin?.answers === undefined && origin?.effects === undefined) return undefined;
    return new FlowAnswers(store, body, origin);
  }

  private constructor(store: Store, body: FlowBody, origin: CommandForkOrigin) {
    this.#store = store;
    this.#body = body;
    this.#origin = origin;
  }

  async find(ref: NodeRef, given: NodeArguments): Promise<FlowAnswer> {
    const node = ref.head.region.head;
    const { kind } = node.work;
    const isEffect = kind === "action" || kind === "call" || ref.index !== undefined;
    if (!isEffect || "value" in given) return "execute";
    const values =
      "item" in given ? given.item : neededValues(node, valuesFrom(this.#body, node.id, decodeInputs(given.inputs)));
    if (values === SKIPPED) return "execute";
    const { answers = {}, effects } = this.#origin;
    // flow-answers.A1
    if (Object.hasOwn(answers, ref.item)) return { outcome: "value", value: answers[ref.item], attempt: 0 };
    if (effects !== "recorded") return "execute";
    const recorded = await (this.#recorded ??= this.#read());
    const entry = recorded.of(ref.item);
    if (entry === undefined || entry.type === "NodeSkipped") return "unrecorded";
    const before = "item" in given ? this.#itemOf(recorded, ref) : this.#valuesOf(recorded, ref);
    // flow-answers.A2
    if (textOf(values) !== textOf(before)) return "unrecorded";
    if (entry.type === "NodeCompleted") return { outcome: "value", value: entry.data.result, attempt: 0 };
    return { outcome: "failure", error: errorOf(entry.data), attempt: 0 };
  }

  async #read(): Promise<RecordedNodes> {
    const { run, generation, head = 0 } = this.#origin;
    const origin = await this.#store.findRun(run, generation);
    return new RecordedNodes(origin === undefined ? [] : await this.#store.readJournal(origin.run, 0, head));
  }

  #itemOf(recorded: RecordedNodes, { head, index = 0 }: NodeRef): unknown {
    return recorded.items(`${head.region.head.name}${SPREAD_SUFFIX}`)[index];
  }

  /** The values that the node needed in the origin. */
  #valuesOf(recorded: RecordedNodes, { head }: NodeRef): Readonly<Record<string, unknown>> {
    const values: Record<string, unknown> = {};
    for (const need of head.region.head.needs) {
      const { work } = this.#body.nodes.get(need) ?? {};
      values[need] =
        need === "input"
          ? recorded.input
          : work?.kind === "barrier"
            ? recorded.list(need, work)
            : recorded.kept(need)?.value;
    }
    return values;
  }
}

function textOf(value: unknown): string {
  return encode(value);
}

export function effectNotRecorded(node: string): RepriseError {
  return new RepriseError(
    "EFFECT_NOT_RECORDED",
    `Node ${node} is to be executed, but the origin of this fork recorded no end of it with these values, and the fork uses recorded effects only. Fork again with an answer for ${node}, or with effects: "live".`,
  );
}
