// Joins: nodes that wait, across steps, until other nodes have arrived (route.R3).
//
// joins.J1. A join fires with the arrivals it has once no active node can reach a missing one through declared edges. It
//   does not wait forever for a branch that was not taken.
// joins.J2. A waiting join counts as active, so a later join never fires before an earlier one. Joins that wait for each
//   other while nothing else is active are a deadlock: the run fails with their names.
// joins.J3. A node without edges continues with its `goto`, so it can reach every node. In the search for a deadlock it
//   reaches none: only declared edges count.
// joins.J4. A checkpoint keeps each arrival of a waiting join once per node and step.

import { invariant, RepriseError } from "../base/index.ts";
import type { GraphBody, GraphEdge } from "./definition.ts";
import type { Path } from "./order-key.ts";

/** A node that has reached the join. */
export interface JoinArrival {
  readonly node: string;
  readonly path: Path;
  readonly edge: number;
}

/** A join with missing arrivals, as a checkpoint stores it. Arrivals are ordered by step, then in fold order. */
export interface WaitingJoin {
  readonly node: string;
  readonly arrived: readonly JoinArrival[];
}

type Activate = (node: string, parent: JoinArrival, edge: number) => void;

export class Joins {
  readonly #body: GraphBody;
  readonly #waiting: Map<string, JoinArrival[]>;
  /** joins.J4. The arrivals of this step. */
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
    invariant(this.#body.joins.has(join), "A node arrives only at a join.");
    if (arrived === undefined) this.#waiting.set(join, [{ node, path, edge }]);
    else arrived.push({ node, path, edge });
  }

  /** Fires complete joins, then those that nothing can complete any more. A node is activated once per step. */
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

  /** Consumes the first arrival of each node; later ones stay for the next activation. */
  #take(join: string, activate: Activate): void {
    const taken = new Set<string>();
    const later: JoinArrival[] = [];
    let first: JoinArrival | undefined;
    for (const arrived of this.#waiting.get(join) ?? []) {
      if (taken.has(arrived.node)) later.push(arrived);
      else {
        taken.add(arrived.node);
        first ??= arrived;
      }
    }
    if (later.length > 0) this.#waiting.set(join, later);
    else this.#waiting.delete(join);
    invariant(first !== undefined, "A join fires with at least one arrival.");
    activate(join, first, first.edge);
  }

  /** joins.J1, joins.J2 */
  #releasable(active: ReadonlySet<string>): string | undefined {
    const stuck = [...this.#waiting.keys()].filter((join) => !active.has(join));
    if (stuck.length === 0) return undefined;
    const reached = reachableFrom(this.#body, active, ANYWHERE);
    const free = stuck.filter((join) => this.#missing(join).every((name) => !reached.has(name)));
    const first = this.#firstFree(free, stuck, ANYWHERE);
    if (first !== undefined || active.size > 0) return first;
    const declared = this.#firstFree(free, stuck, NOWHERE);
    if (declared === undefined) throw this.#deadlock(stuck);
    return declared;
  }

  /** A join whose missing arrivals cannot come from another waiting join. */
  #firstFree(free: readonly string[], stuck: readonly string[], edgeless: Edgeless): string | undefined {
    return free.find((join) => {
      const others = stuck.filter((other) => other !== join);
      const reached = reachableFrom(this.#body, others, edgeless);
      return this.#missing(join).every((name) => !reached.has(name));
    });
  }

  #deadlock(stuck: readonly string[]): RepriseError {
    const waits = stuck.map((join) => `${join} for ${this.#missing(join).join(", ")}`);
    return new RepriseError(
      "NO_PROGRESS",
      `Graph ${this.#body.name} cannot continue: its joins wait for each other (${waits.join("; ")}), and no other node is active. Remove one of these joins, or one of the nodes it waits for.`,
      { details: { nodes: stuck } },
    );
  }
}

/** joins.J3. The nodes that a node without edges can reach. */
type Edgeless = (body: GraphBody) => Iterable<string>;
const ANYWHERE: Edgeless = ({ nodes }) => nodes.keys();
const NOWHERE: Edgeless = () => [];

/** The given nodes and every node they can reach. */
function reachableFrom(body: GraphBody, from: Iterable<string>, edgeless: Edgeless): ReadonlySet<string> {
  const found = new Set<string>(from);
  // Iterating over a set includes what is added meanwhile.
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
