// Flow steps: the records of a flow's run: one for each node that has ended, by name; `x` before `x[]` before `x[0]`.
//
// steps-flow.F1. The first end of a node counts: a child that is retried on its own answers its parent again.
// steps-flow.F2. The output of `x[]` is its whole list, however it is divided among entries.

import { RepriseError } from "../base/index.ts";
import { parseItemName } from "../flow/index.ts";
import type { PlainEntry } from "./journal-tree.ts";
import type { MemberTexts } from "./member-texts.ts";
import { MessageSteps } from "./message-steps.ts";
import { stringIn, type EmitStep, type MemberKeys, type StepPlace, type StepReader, type StepRecord } from "./steps.ts";

interface OpenSpread {
  readonly command: string;
  /** The items of each entry, without brackets. */
  readonly parts: string[];
}

type ChildCall = Pick<StepRecord, "name" | "in">;

export class FlowSteps implements StepReader {
  readonly #keys: MemberKeys;
  readonly #emit: EmitStep;
  readonly #messages: MessageSteps;
  /** The children of nodes that have not ended, by node. */
  readonly #children = new Map<string, ChildCall>();
  /** Nodes by name, in the order in which they were first seen. */
  readonly #nodes = new Map<string, number>();
  #spread: OpenSpread | undefined;

  constructor(keys: MemberKeys, emit: EmitStep) {
    this.#keys = keys;
    this.#emit = emit;
    this.#messages = new MessageSteps(keys, emit);
  }

  add(entry: PlainEntry, members: MemberTexts): boolean {
    const { type, command } = entry;
    if (type === "ItemsSpread") return this.#addItems(entry, members);
    this.#endSpread();
    switch (type) {
      case "ChildWorkflowInitiated":
        this.#children.set(command, {
          name: stringIn(members, "childExecutionName"),
          in: this.#keys.of(members, "input", command, "in"),
        });
        return true;
      case "NodeCompleted":
        if (parseItemName(command).kind === "spread") this.#spread = { command, parts: [] };
        else this.#endNode(command, members, { out: this.#keys.of(members, "result", command, "out") });
        return true;
      case "NodeFailed":
        this.#endNode(command, members, {});
        return true;
      case "NodeSkipped":
        this.#endNode(command, members, { end: "skipped" });
        return true;
      default:
        return this.#messages.add(entry, members);
    }
  }

  #endNode(command: string, members: MemberTexts, end: Partial<StepRecord>): void {
    const child = this.#children.get(command);
    if (child !== undefined) this.#children.delete(command);
    const failure = members.has("caught") ? "caught" : "error";
    const record: StepRecord = {
      command,
      kind: "node",
      ...child,
      error: this.#keys.of(members, failure, command, "error"),
      kept: this.#keys.of(members, "kept", command, "kept"),
      skipped: this.#keys.of(members, "skipped", command, "skipped"),
      ...end,
    };
    this.#emit(record, this.#placeOf(command));
  }

  #addItems({ seq, command }: PlainEntry, members: MemberTexts): true {
    const items = members.get("items");
    if (this.#spread?.command !== command || items === undefined)
      throw new RepriseError(
        "STORE_CORRUPT",
        `Entry ${seq} has items of ${command}, which do not follow its completion. Run \`reprise doctor\`.`,
      );
    if (items !== "[]") this.#spread.parts.push(items.slice(1, -1));
    return true;
  }

  /** steps-flow.F2. The entries of a spread follow each other: they are of one commit. */
  #endSpread(): void {
    if (this.#spread === undefined) return;
    const { command, parts } = this.#spread;
    this.#spread = undefined;
    const out = this.#keys.ofText(`[${parts.join(",")}]`, command, "out");
    this.#emit({ command, kind: "node", out }, this.#placeOf(command));
  }

  #placeOf(command: string): StepPlace {
    const { node, kind, index } = parseItemName(command);
    let number = this.#nodes.get(node);
    if (number === undefined) this.#nodes.set(node, (number = this.#nodes.size));
    if (index !== undefined) return [number, 2, index];
    return [number, kind === "spread" ? 1 : 0, 0];
  }

  ranks(): readonly number[] {
    const ranks: number[] = [];
    const names = [...this.#nodes].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (const [rank, [, number]] of names.entries()) ranks[number] = rank;
    return ranks;
  }

  finish(): void {
    this.#endSpread();
    this.#messages.finish();
  }
}
