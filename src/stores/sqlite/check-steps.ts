// Step walk: whether the entries of a graph's journal make steps, one after the other (I13).
//
// SW1. Steps are dense from 0, or from where a fork began.
// SW2. The entry of a node is that of an item of the frontier before it: at its place, by its name, in the step that is next.
// SW3. A step is committed when every item of the frontier before it has its result, and not before.
// SW4. A run that completed has nothing left to do: no item, and no join that waits.

import { decode } from "../../base/index.ts";
import { nodeItemOf, type Entry } from "../../kernel/index.ts";
import type { Fault } from "./check-journal.ts";

const INVARIANT = "I13 a step commits once";

interface StepData {
  readonly step: number;
  readonly frontier: readonly { readonly node: string }[];
  readonly waiting?: readonly { readonly node: string; readonly arrived: readonly unknown[] }[];
}

export class StepCheck {
  readonly faults: Fault[] = [];
  /** The first step of the journal; undefined before it. */
  first: number | undefined;
  last: number | undefined;
  #frontier: StepData["frontier"] = [];
  #waiting: readonly string[] = [];
  /** Places of the next step that have a result. */
  #done = new Set<number>();
  /** What comes after something that cannot be read says nothing any more. */
  #broken = false;

  see(entry: Entry): void {
    if (this.#broken) return;
    try {
      if (entry.type === "StepCommitted") this.#commit(entry, decode(entry.data) as StepData);
      else if (entry.type === "NodeCompleted" || entry.type === "NodeFailed" || entry.type === "NodeRetried")
        this.#node(entry);
      else if (entry.type === "RunCompleted") this.#end(entry);
    } catch {
      // A damaged payload: the journal's own check says which entry it is.
      this.#broken = true;
    }
  }

  #commit({ seq }: Entry, { step, frontier, waiting = [] }: StepData): void {
    // SW1
    if (this.last !== undefined && step !== this.last + 1)
      this.#fault(seq, `Step ${step} follows step ${this.last}; expected step ${this.last + 1}.`);
    // SW3
    const missing = this.#frontier.findIndex((_item, place) => !this.#done.has(place));
    if (missing !== -1)
      this.#fault(
        seq,
        `Step ${step} is committed without a result of its node ${this.#frontier[missing]!.node} (Node(${step}.${missing})).`,
      );
    const idle = waiting.find(({ arrived }) => arrived.length === 0);
    if (idle !== undefined)
      this.#fault(seq, `After step ${step} the join ${idle.node} waits, and nothing has arrived there.`);
    this.first ??= step;
    this.last = step;
    this.#frontier = frontier;
    this.#waiting = waiting.map(({ node }) => node);
    this.#done = new Set();
  }

  /** SW2 */
  #node({ seq, type, command, data }: Entry): void {
    const { operationName: name } = decode(data) as { operationName?: string };
    const place = nodeItemOf(command);
    // Whose entry it is cannot be seen; none that we wrote is like that.
    if (name === undefined) return;
    const item = place?.step === (this.last ?? -1) + 1 ? this.#frontier[place.position] : undefined;
    if (place === undefined || item?.node !== name) {
      const after = this.last === undefined ? "before the first step" : `after step ${this.last}`;
      this.#fault(seq, `${command} (${name}) stands ${after}, whose frontier has no such item.`);
    } else if (type === "NodeCompleted") this.#done.add(place.position);
  }

  /** SW4 */
  #end({ seq }: Entry): void {
    const left = [...this.#frontier.map(({ node }) => node), ...this.#waiting];
    if (left.length > 0) this.#fault(seq, `The run completed after step ${this.last} with work left: ${left[0]}.`);
  }

  #fault(seq: number, message: string): void {
    this.faults.push({ invariant: INVARIANT, seq, message });
  }
}
