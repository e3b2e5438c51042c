// Flow replay: compares a flow's code with the journal of a run. It calls no service and writes nothing.
//
// flow.R1. Values of actions, calls and items come from the journal. Derived values are derived again and compared.
// flow.R2. Entries are matched by node, not by order, because nodes end in any order.
// flow.R3. A node without an entry is open, and so is every node that needs it.
// flow.R4. As in the run, the nodes of a region share values, and every region has its own copies of the values of others.
//   So a function that modifies a value affects the same nodes as in the run.

import { decode, encode, type PayloadLimits } from "../base/index.ts";
import type { Entry } from "../kernel/index.ts";
import { entryData, isNotStarted, type Replay } from "../workflow/index.ts";
import { OUTPUT, type FlowBody } from "./definition.ts";
import { derive, neededValues, SKIPPED, type ValuesByNode } from "./evaluate.ts";
import { RecordedNodes, type NodeEndEntry } from "./recorded-nodes.ts";
import { SPREAD_SUFFIX, type FlowNode } from "./node.ts";

const OPEN: unique symbol = Symbol("open");

type FlowMismatch = Extract<Replay, { readonly status: "mismatch" }>;

export function replayFlow(body: FlowBody, entries: readonly Entry[], chain: string): Replay {
  const recorded = new RecordedNodes(entries);
  if (isNotStarted(recorded.end)) return { status: "same", digest: `sha256:${chain}` };
  const unknownNode = recorded.findUnknown((item) => isKnown(body, item));
  if (unknownNode !== undefined)
    return mismatch(
      unknownNode.command,
      `the journal recorded node ${unknownNode.command}, which the flow does not have.`,
      undefined,
      unknownNode.command,
    );
  return new Replayed(body, recorded).run() ?? { status: "same", digest: `sha256:${chain}` };
}

function isKnown({ nodes }: FlowBody, item: string): boolean {
  return nodes.has(item) || nodes.has(item.replace(/\[\d+\]$/, SPREAD_SUFFIX));
}

class Replayed {
  readonly #body: FlowBody;
  readonly #recorded: RecordedNodes;
  /** flow.R4 */
  readonly #known = new Map<string, unknown>();
  readonly #homes = new Map<string, string>();
  readonly #own = new Map<string, Map<string, unknown>>();
  /** Regions in which a function threw, as in the run, so that nothing after it was derived. */
  readonly #broken = new Set<string>();

  constructor(body: FlowBody, recorded: RecordedNodes) {
    this.#body = body;
    this.#recorded = recorded;
    for (const [head, { region }] of body.regions) for (const { id } of region.inline) this.#homes.set(id, head);
  }

  run(): FlowMismatch | undefined {
    this.#known.set("input", this.#recorded.input);
    for (const node of this.#body.nodes.values()) {
      if (node.work.kind === "input") continue;
      const found = this.#check(node);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #check(node: FlowNode): FlowMismatch | undefined {
    const { work, id } = node;
    if (work.kind === "barrier") return this.#checkBarrier(node);
    const home = this.#homes.get(id);
    const entry = this.#recorded.of(id);
    const waits = [...node.needs, ...(node.guard === undefined ? [] : [node.guard.when])];
    if (waits.some((name) => this.#known.get(name) === OPEN) || this.#broken.has(home ?? id))
      return this.#leaveOpen(id);
    const given = neededValues(node, this.#visibleTo(home ?? id, waits));
    if (given === SKIPPED) {
      this.#known.set(id, SKIPPED);
      if (entry === undefined || entry.type === "NodeSkipped") return undefined;
      return mismatch(id, `the journal recorded that ${id} ran; the code now skips it.`, "skipped", entry.type);
    }
    if (entry?.type === "NodeSkipped")
      return mismatch(id, `the journal recorded that ${id} was skipped; the code now runs it.`, "run", "skipped");
    // flow.R3
    if (home === undefined && entry === undefined) return this.#leaveOpen(id);
    switch (work.kind) {
      case "action":
      case "call":
        if (entry?.type !== "NodeCompleted") return this.#leaveOpen(id);
        this.#known.set(id, entry.data.result);
        return undefined;
      case "spread":
        return this.#checkSpread(node, given, entry);
      default:
        return this.#checkDerived(node, given);
    }
  }

  #leaveOpen(id: string): undefined {
    this.#known.set(id, OPEN);
  }

  /** flow.R4 */
  #visibleTo(home: string, names: readonly string[]): ValuesByNode {
    let own = this.#own.get(home);
    if (own === undefined) this.#own.set(home, (own = new Map()));
    const visible = new Map<string, unknown>();
    for (const name of names) {
      const isOwn = (this.#homes.get(name) ?? name) === home;
      const value = isOwn && own.has(name) ? own.get(name) : copyOf(this.#known.get(name));
      if (isOwn) own.set(name, value);
      visible.set(name, value);
    }
    return visible;
  }

  #checkDerived(node: FlowNode, given: Readonly<Record<string, unknown>>): FlowMismatch | undefined {
    const { id } = node;
    const home = this.#homes.get(id) ?? id;
    const failed = this.#recorded.of(id);
    let value: unknown;
    try {
      value = derive(node, given);
    } catch (error) {
      this.#leaveOpen(id);
      this.#broken.add(home);
      const isSame =
        failed?.type === "NodeFailed" ||
        (id === OUTPUT && this.#recorded.end?.type === "RunFailed") ||
        (home === "input" && !this.#recorded.hasStarted);
      return isSame
        ? undefined
        : mismatch(
            id,
            `the journal recorded a value of ${id}; its function now throws.`,
            entryData.errorText(error),
            failed?.type,
          );
    }
    if (failed?.type === "NodeFailed") {
      if (isData(value, this.#recorded.limits))
        return mismatch(
          id,
          `the journal recorded that ${id} threw; its function now returns a value.`,
          textOf(value),
          "NodeFailed",
        );
      this.#broken.add(home);
      return this.#leaveOpen(id);
    }
    const kept = id === OUTPUT ? this.#recorded.output : this.#recorded.kept(id);
    const isSame = kept === undefined || textOf(value) === textOf(kept.value);
    this.#known.set(id, kept === undefined ? value : kept.value);
    this.#own.get(home)?.set(id, kept === undefined ? value : copyOf(kept.value));
    if (isSame) return undefined;
    return mismatch(
      id,
      `The code now derives another value of ${id} than the journal recorded.`,
      textOf(value),
      textOf(kept.value),
    );
  }

  #checkSpread(
    node: FlowNode,
    given: Readonly<Record<string, unknown>>,
    entry: NodeEndEntry | undefined,
  ): FlowMismatch | undefined {
    const { id } = node;
    if (entry?.type !== "NodeCompleted") return this.#leaveOpen(id);
    const recorded = this.#recorded.items(id);
    this.#known.set(id, recorded);
    let items: unknown;
    try {
      items = derive(node, given);
    } catch (error) {
      return mismatch(
        id,
        `the journal recorded the items of ${id}; its items function now throws.`,
        entryData.errorText(error),
        textOf(recorded),
      );
    }
    if (textOf(items) === textOf(recorded)) return undefined;
    return mismatch(
      id,
      `The code now returns other items of ${id} than the journal recorded.`,
      textOf(items),
      textOf(recorded),
    );
  }

  #checkBarrier({ id, work }: FlowNode): FlowMismatch | undefined {
    const items = this.#known.get(`${id}${SPREAD_SUFFIX}`);
    if (items === OPEN || items === SKIPPED) {
      this.#known.set(id, items);
      return undefined;
    }
    const settle = work.kind === "barrier" && work.settle;
    const list: unknown[] = [];
    for (const index of (items as readonly unknown[]).keys()) {
      const entry = this.#recorded.of(`${id}[${index}]`);
      if (entry?.type === "NodeCompleted")
        list.push(settle ? { status: "fulfilled", value: entry.data.result } : entry.data.result);
      else if (entry?.type === "NodeFailed" && settle)
        list.push({ status: "rejected", reason: entryData.errorOf(entry.data) });
      else {
        this.#known.set(id, OPEN);
        return undefined;
      }
    }
    this.#known.set(id, list);
    return undefined;
  }
}

/** The canonical text of a value; for one that cannot be stored, the reason. */
function textOf(value: unknown): string {
  try {
    return encode(value);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function isData(value: unknown, limits?: PayloadLimits): boolean {
  try {
    encode(value, limits);
    return true;
  } catch {
    return false;
  }
}

function copyOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && isData(value) ? decode(encode(value)) : value;
}

function mismatch(where: string, message: string, expected: unknown, actual: unknown): FlowMismatch {
  return { status: "mismatch", where, message, expected, actual };
}
