// Check steps: the entries of a graph's journal form consecutive steps (rules.I13).
//
// check-steps.S1. Steps are dense from 0, or from the step of a fork.
// check-steps.S2. The entry of a node belongs to an item of the frontier before it: same position, same node, next step.
// check-steps.S3. A step is committed when every item of the frontier before it has a result, and not before.
// check-steps.S4. A run that completed has no work left: no item, and no waiting join.

import { decodeData, nodeItemOf, type Entry, type StepCommittedData } from "../../kernel/index.ts";
import type { Fault } from "./check-journal.ts";

const INVARIANT = "I13 a step commits once";

export class StepCheck {
  readonly faults: Fault[] = [];
  /** The first step of the journal; undefined before it. */
  first: number | undefined;
  last: number | undefined;
  #frontier: StepCommittedData["frontier"] = [];
  #waiting: readonly string[] = [];
  /** Positions of the next step that have a result. */
  #done = new Set<number>();
  /** After an entry that cannot be read, the following entries prove nothing. */
  #broken = false;

  see(entry: Entry): void {
    if (this.#broken) return;
    try {
      if (entry.type === "StepCommitted") this.#commit(entry, decodeData(entry.type, entry.data));
      else if (entry.type === "NodeCompleted" || entry.type === "NodeFailed" || entry.type === "NodeRetried")
        this.#node(entry);
      else if (entry.type === "RunCompleted") this.#end(entry);
    } catch {
      // A damaged payload: the check of the journal reports the entry.
      this.#broken = true;
    }
  }

  #commit({ seq }: Entry, { step, frontier, waiting = [] }: StepCommittedData): void {
    // check-steps.S1
    if (this.last !== undefined && step !== this.last + 1)
      this.#fault(seq, `Step ${step} follows step ${this.last}; expected step ${this.last + 1}.`);
    // check-steps.S3
    const missing = this.#frontier.findIndex((_item, place) => !this.#done.has(place));
    if (missing !== -1)
      this.#fault(
        seq,
        `Step ${step} is committed without a result of node ${this.#frontier[missing]!.node} (Node(${step}.${missing})).`,
      );
    const idle = waiting.find(({ arrived }) => arrived.length === 0);
    if (idle !== undefined)
      this.#fault(
        seq,
        `After step ${step} the join ${idle.node} is waiting, but none of its predecessors has arrived.`,
      );
    this.first ??= step;
    this.last = step;
    this.#frontier = frontier;
    this.#waiting = waiting.map(({ node }) => node);
    this.#done = new Set();
  }

  /** check-steps.S2 */
  #node({ seq, type, command, data }: Entry): void {
    const { operationName: name } = decodeData("NodeCompleted", data);
    const place = nodeItemOf(command);
    // Reprise writes no entry without a node name, so there is nothing to check.
    if (name === undefined) return;
    const item = place?.step === (this.last ?? -1) + 1 ? this.#frontier[place.position] : undefined;
    if (place === undefined || item?.node !== name) {
      const after = this.last === undefined ? "before the first step" : `after step ${this.last}`;
      this.#fault(seq, `${command} (${name}) is recorded ${after}, but that frontier has no such item.`);
    } else if (type === "NodeCompleted") this.#done.add(place.position);
  }

  /** check-steps.S4 */
  #end({ seq }: Entry): void {
    const left = [...this.#frontier.map(({ node }) => node), ...this.#waiting];
    if (left.length > 0) this.#fault(seq, `The run completed after step ${this.last} with work left: ${left[0]}.`);
  }

  #fault(seq: number, message: string): void {
    this.faults.push({ invariant: INVARIANT, seq, message });
  }
}
