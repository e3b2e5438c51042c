// Joins: nodes that wait until others have arrived, across steps (GR3).
//
// J1. A join is released with what arrived when nothing left can reach what is missing over declared edges: it must not wait
//     for ever for a branch that was not taken.
// J2. Another join that waits counts as something left, so that a join further down never goes first. Joins that wait for
//     each other when nothing else is left are a deadlock: the run fails, with their names.
// J3. A node without edges goes where its `goto` says: it can reach anything. When nothing else is left that is held against
//     nobody: only declared edges make a deadlock.

import { RepriseError } from "../base/index.ts";
import type { GraphBody, GraphEdge } from "./definition.ts";
import type { Path } from "./order-key.ts";

/** Something that led to the join. */
export interface Arrived {
  readonly node: string;
  readonly path: Path;
  readonly edge: number;
}

/** A join that has not got everything it waits for, as its checkpoint keeps it. Arrivals in order: by step, then fold order. */
export interface WaitingJoin {
  readonly node: string;
  readonly arrived: readonly Arrived[];
}

type Activate = (node: string, parent: Arrived, edge: number) => void;

export class Joins {
  readonly #body: GraphBody;
  readonly #waiting: Map<string, Arrived[]>;
  /** Once per step (GR3). */
  readonly #now = new Set<string>();

  constructor(body: GraphBody, waiting: readonly WaitingJoin[]) {
    this.#body = body;
    this.#waiting = new Map(waiting.map(({ node, arrived }) => [node, [...arrived]]));
  }

  arrive(join: string, { node, path }: { readonly node: string; readonly path: Path }, edge: number): void {
    const key = JSON.stringify([join, node]);
    if (this.#now.has(key)) return;
    this.#now.add(key);
    const arrived = this.#waiting.get(join);
    if (arrived === undefined) this.#waiting.set(join, [{ node, path, edge }]);
    else arrived.push({ node, path, edge });
  }

  /** Activates what is complete, then what can wait for nothing more. A node is activated once per step. */
  open(active: ReadonlySet<string>, activate: Activate): void {
    for (const join of this.#waiting.keys())
      if (!active.has(join) && this.#missing(join).length === 0) this.#take(join, activate);
    for (let join = this.#releasable(active); join !== undefined; join = this.#releasable(active))
      this.#take(join, activate);
  }

  waiting(): readonly WaitingJoin[] {
    return [...this.#waiting].map(([node, arrived]) => ({ node, arrived }));
  }

  #missing(join: string): readonly string[] {
    const arrived = new Set(this.#waiting.get(join)?.map(({ node }) => node));
    return (this.#body.joins.get(join) ?? []).filter((name) => !arrived.has(name));
  }

  /** The first arrival of each node goes; later ones are for the next round. */
  #take(join: string, activate: Activate): void {
    const taken = new Set<string>();
    const later: Arrived[] = [];
    let first: Arrived | undefined;
    for (const arrived of this.#waiting.get(join) ?? []) {
      if (taken.has(arrived.node)) later.push(arrived);
      else {
        taken.add(arrived.node);
        first ??= arrived;
      }
    }
    if (later.length > 0) this.#waiting.set(join, later);
    else this.#waiting.delete(join);
    if (first !== undefined) activate(join, first, first.edge);
  }

  /** J1, J2 */
  #releasable(active: ReadonlySet<string>): string | undefined {
    const stuck = [...this.#waiting.keys()].filter((join) => !active.has(join));
    if (stuck.length === 0) return undefined;
    const reached = reach(this.#body, active, ANYWHERE);
    const free = stuck.filter((join) => this.#missing(join).every((name) => !reached.has(name)));
    const first = this.#firstFree(free, stuck, ANYWHERE);
    if (first !== undefined || active.size > 0) return first;
    const declared = this.#firstFree(free, stuck, NOWHERE);
    if (declared === undefined) throw this.#deadlock(stuck);
    return declared;
  }

  /** What it misses cannot come from another join either. */
  #firstFree(free: readonly string[], stuck: readonly string[], edgeless: Edgeless): string | undefined {
    return free.find((join) => {
      const others = stuck.filter((other) => other !== join);
      const reached = reach(this.#body, others, edgeless);
      return this.#missing(join).every((name) => !reached.has(name));
    });
  }

  #deadlock(stuck: readonly string[]): RepriseError {
    const waits = stuck.map((join) => `${join} for ${this.#missing(join).join(", ")}`);
    return new RepriseError(
      "NO_PROGRESS",
      `Graph ${this.#body.name} cannot go on: its joins wait for each other (${waits.join("; ")}), and nothing else is left. Take one of them out of the circle.`,
      { details: { nodes: stuck } },
    );
  }
}

/** Where a node without edges is taken to lead. */
type Edgeless = (body: GraphBody) => Iterable<string>;
const ANYWHERE: Edgeless = ({ nodes }) => nodes.keys();
const NOWHERE: Edgeless = () => [];

/** Everything that may still do its part: what is active, and where that leads. */
function reach(body: GraphBody, from: Iterable<string>, edgeless: Edgeless): ReadonlySet<string> {
  const found = new Set<string>(from);
  // A set may grow while it is walked.
  for (const node of found) {
    const edges = body.edges.get(node) ?? [];
    for (const next of edges.length === 0 ? edgeless(body) : edges.flatMap(targetsOf)) found.add(next);
  }
  return found;
}

function targetsOf(edge: GraphEdge): readonly string[] {
  return edge.edge === "spread"
    ? [edge.target]
    : edge.targets.filter((target): target is string => typeof target === "string");
}
