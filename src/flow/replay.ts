// Flow replay: compares a flow's code with the journal of a run. It calls no service and writes nothing.
//
// flow.R1. Values of actions, calls and items come from the journal. Derived values are derived again and compared.
// flow.R2. Entries are matched by node, not by order, because nodes end in any order.
// flow.R3. A node without an entry is open, and so is every node that needs it.
// flow.R4. As in the run, the nodes of a region share values, and every region has its own copies of the values of others.
//   So a function that modifies a value affects the same nodes as in the run.

import { decode, encode, type PayloadLimits, digest } from "../base/index.ts";
import { isTask, parseNow, taskBody, type Entry } from "../kernel/index.ts";
import {
  entryData,
  isNotStarted,
  type Differs,
  type OnDelivery,
  type PureCall,
  type Replay,
} from "../workflow/index.ts";
import { OUTPUT, type FlowBody } from "./definition.ts";
import { derive, neededValues, SKIPPED, type ValuesByNode } from "./evaluate.ts";
import { RecordedNodes, type NodeEndEntry } from "./recorded-nodes.ts";
import { SPREAD_SUFFIX, type FlowNode } from "./node.ts";

const OPEN: unique symbol = Symbol("open");

type FlowMismatch = Extract<Replay, { readonly status: "mismatch" }>;

/** Receives the pure nodes that have a recorded value. */
export type OnPureNode = (call: PureCall) => void;

/** Callbacks for the nodes that a replay reaches. */
interface Watchers {
  readonly onDelivery?: OnDelivery | undefined;
  readonly onPure?: OnPureNode | undefined;
}

export function replayFlow(body: FlowBody, entries: readonly Entry[], chain: string, watchers: Watchers = {}): Replay {
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
  return new Replayed(body, recorded, watchers).run() ?? { status: "same", digest: `sha256:${chain}` };
}

function isKnown({ nodes }: FlowBody, item: string): boolean {
  return nodes.has(item) || nodes.has(item.replace(/\[\d+\]$/, SPREAD_SUFFIX));
}

class Replayed {
  readonly #body: FlowBody;
  readonly #recorded: RecordedNodes;
  readonly #onDelivery: OnDelivery | undefined;
  /** flow.R4 */
  readonly #known = new Map<string, unknown>();
  readonly #homes = new Map<string, string>();
  readonly #own = new Map<string, Map<string, unknown>>();
  /** Regions in which a function threw, as in the run, so that nothing after it was derived. */
  readonly #broken = new Set<string>();

  readonly #onPure: OnPureNode | undefined;

  constructor(body: FlowBody, recorded: RecordedNodes, { onDelivery, onPure }: Watchers) {
    this.#body = body;
    this.#recorded = recorded;
    this.#onDelivery = onDelivery;
    this.#onPure = onPure;
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
    this.#onDelivery?.(this.#recorded.of(id) ?? { command: id });
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
    const otherInput = work.kind === "call" ? this.#checkCall(id, () => work.input(given)) : undefined;
    if (otherInput !== undefined) return otherInput;
    // flow.R3
    if (home === undefined && entry === undefined) return this.#leaveOpen(id);
    switch (work.kind) {
      case "action":
      case "call":
        if (entry?.type !== "NodeCompleted") return this.#leaveOpen(id);
        this.#known.set(id, entry.data.result);
        if (this.#onPure !== undefined && !("caught" in entry.data)) this.#reportPure(this.#onPure, node, given);
        return undefined;
      case "spread":
        return this.#checkSpread(node, given, entry);
      default:
        return this.#checkDerived(node, given);
    }
  }

  #checkCall(id: string, input: () => unknown): FlowMismatch | undefined {
    const recorded = this.#recorded.callInput(id);
    if (recorded === undefined) return undefined;
    let value: unknown;
    try {
      value = input();
    } catch (error) {
      const thrown = entryData.errorText(error);
      return mismatch(
        id,
        `the journal recorded the input of ${id}; its input function now throws.`,
        thrown,
        recorded,
        "input",
      );
    }
    if (isData(value, this.#recorded.limits) && digest(encode(value)) === recorded) return undefined;
    return mismatch(
      id,
      `the journal recorded another input of ${id} than the code now passes.`,
      textOf(value),
      recorded,
      "input",
    );
  }

  #leaveOpen(id: string): undefined {
    this.#known.set(id, OPEN);
  }

  /** A pure action, or a call of a pure task. */
  #reportPure(onPure: OnPureNode, { id, work }: FlowNode, given: Readonly<Record<string, unknown>>): void {
    const values = copyOf(given) as Readonly<Record<string, unknown>>;
    if (work.kind === "action" && work.pure !== undefined)
      onPure({ command: id, name: id, pure: work.pure, call: (op) => work.run(op, copyOf(values)) as unknown });
    if (work.kind === "call") this.#reportTask(onPure, id, work.definition, () => work.input(values));
  }

  #reportTask(onPure: OnPureNode, command: string, what: unknown, input: () => unknown): void {
    if (!isTask(what)) return;
    const { pure, run, schema } = taskBody(what);
    const { name } = what;
    if (pure === undefined) return;
    onPure({ command, name, pure, call: (op) => run(op, parseNow(schema, copyOf(input()), `task ${name}`)) });
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
            "value",
          );
    }
    if (failed?.type === "NodeFailed") {
      if (isData(value, this.#recorded.limits))
        return mismatch(
          id,
          `the journal recorded that ${id} threw; its function now returns a value.`,
          textOf(value),
          "NodeFailed",
          "value",
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
      "value",
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
        "value",
      );
    }
    if (textOf(items) === textOf(recorded)) return undefined;
    return mismatch(
      id,
      `The code now returns other items of ${id} than the journal recorded.`,
      textOf(items),
      textOf(recorded),
      "value",
    );
  }

  #checkBarrier({ id, work }: FlowNode): FlowMismatch | undefined {
    const items = this.#known.get(`${id}${SPREAD_SUFFIX}`);
    if (items === OPEN || items === SKIPPED) {
      this.#known.set(id, items);
      return undefined;
    }
    const spread = this.#body.nodes.get(`${id}${SPREAD_SUFFIX}`)?.work;
    if (this.#onPure !== undefined && spread?.kind === "spread")
      for (const [index, item] of (items as readonly unknown[]).entries())
        if (this.#recorded.of(`${id}[${index}]`)?.type === "NodeCompleted")
          this.#reportTask(this.#onPure, `${id}[${index}]`, spread.run, () => item);
    const list = this.#recorded.list(id, { settle: work.kind === "barrier" && work.settle });
    this.#known.set(id, list ?? OPEN);
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

/** Without `differs`: the code has other nodes, or takes another branch. */
function mismatch(where: string, message: string, expected: unknown, actual: unknown, differs?: Differs): FlowMismatch {
  return { status: "mismatch", where, message, expected, actual, ...(differs !== undefined && { differs }) };
}
