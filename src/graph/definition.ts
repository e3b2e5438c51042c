// Defining a graph: nodes over shared state, then the edges between them.
//
// D1. Names are checked as the graph is written: an edge to an unknown node does not compile, and is refused at run time.
// D2. Everything else that can be wrong is refused when the graph is used: `graphBody` checks it once, before a run starts.
// D3. A join is itself the way from the nodes it waits for, in its place among their edges; a node with an edge of its own
//     to it, conditional or one of several targets, goes by that one.

import { checkName, RepriseError, toMs, type Duration } from "../base/index.ts";
import {
  checkDeadline,
  labelOption,
  lineOptions,
  type Awaitable,
  type Definition,
  type LineOptions,
  type Policy,
  type Ports,
  type PromisePort,
  type Queue,
  type Stream,
} from "../kernel/index.ts";
import type { Channels, Changes, Values } from "./channel.ts";
import { checkGraph } from "./check-graph.ts";
import { checkFunction, checkNodeOptions, checkOptions } from "./check-options.ts";
import type { NodeContext } from "./context.ts";

/** The type of `START`. */
export interface Start {
  readonly start: true;
}
/**
 * Where a graph begins: the first edge goes from here.
 *
 * @example
 * ```ts
 * import { graph, START } from "reprise";
 * const hello = graph("hello", { state: {} }).node("greet", async () => {}).edge(START, "greet");
 * ```
 */
export const START: Start = Object.freeze({ start: true });
/** The type of `END`. */
export interface End {
  readonly end: true;
}
/**
 * Where a graph ends.
 *
 * @example
 * ```ts
 * import { END, graph, last, START } from "reprise";
 * const count = graph("count", { state: { n: last(0) } })
 *   .node("add", async (_ctx, { n }) => ({ n: n + 1 }))
 *   .edge(START, "add")
 *   .edge("add", END, ({ n }) => n >= 3)
 *   .edge("add", "add");
 * ```
 */
export const END: End = Object.freeze({ end: true });

/** Where a node says the run goes on, and what it changes. */
export interface Goto<To, Change> {
  readonly goto: To;
  readonly change?: Change;
}

/**
 * The result of a node that chooses where the run goes on by itself, instead of leaving it to the edges.
 *
 * @example
 * ```ts
 * import { END, goto, graph, last, START } from "reprise";
 * const ask = graph("ask", { state: { ok: last(false) } })
 *   .node("decide", async () => (Math.max(1, 2) > 1 ? goto("act", { ok: true }) : goto(END)))
 *   .node("act", async () => {})
 *   .edge(START, "decide");
 * ```
 */
export function goto<const To extends string | End, Change = {}>(
  to: To | readonly To[],
  change?: Change,
): Goto<To, Change> {
  return { goto: to as To, ...(change !== undefined && { change }) };
}

type Stray<R, Change> =
  R extends Goto<any, infer U>
    ? Exclude<keyof U, keyof Change>
    : R extends object
      ? Exclude<keyof R, keyof Change>
      : never;
type Known<R, Change> = [Stray<R, Change>] extends [never]
  ? unknown
  : `no channel named "${Stray<R, Change> & string}"`;
type Fresh<N extends string, Taken> = N extends Taken ? `"${N}" is already taken` : N;
/** A node that only throws could have said anything: it names nothing. */
type GotoOf<R> = R extends Goto<infer To, any> ? (0 extends 1 & To ? never : Extract<To, string>) : never;

/** What a node may do to the outside, for replay. */
export interface Effects {
  /** Default true. False: its result depends on more than its state, item and `ctx`; a replay takes the recorded one. */
  recordable?: boolean;
  /** What it does outside must be recognised when it is repeated: `idempotencyKey` has to be given. */
  requiresIdempotency?: boolean;
}
/** Policies of a node. `idempotencyKey` becomes `ctx.idempotencyKey`: the same in every attempt, and another for other work. */
export type NodeOptions<S, Item = any> = Policy &
  (
    | { effects?: Effects & { requiresIdempotency?: false } }
    | { effects: Effects & { requiresIdempotency: true }; idempotencyKey: (state: S, item: Item) => string }
  );

type NodeFunction<M, State, Item, R, Change> = (
  ctx: NodeContext<M>,
  state: State,
  item: Item,
) => Awaitable<R & Known<R, Change>>;

/** `Nodes`: reached by edges. `Items`: reached by spread, with the item each takes. */
export interface Graph<
  Name extends string,
  State,
  Change,
  Output = State,
  Nodes extends string = never,
  Items = {},
  Gotos extends string = never,
  M = {},
> extends Omit<Definition<Name, Change, Output, M, State>, "kind"> {
  /** A graph whose `goto` names no node is not a definition. */
  readonly kind: [Exclude<Gotos, Nodes>] extends [never] ? "graph" : `goto: no node named "${Exclude<Gotos, Nodes>}"`;
  node<const N extends string, R extends Change | Goto<any, Change> | void, Item = void>(
    name: Fresh<N, Nodes | keyof Items>,
    run: NodeFunction<M, State, Item, R, Change>,
  ): WithNode<this, N, Item, R>;
  node<const N extends string, R extends Change | Goto<any, Change> | void, Item = void>(
    name: Fresh<N, Nodes | keyof Items>,
    options: NodeOptions<State, NoInfer<Item>>,
    run: NodeFunction<M, State, Item, R, Change>,
  ): WithNode<this, N, Item, R>;
  /** The first edge in written order whose `when` holds is taken; several targets at once: an array. */
  edge(from: Nodes | keyof Items | Start, to: Nodes | End | readonly Nodes[], when?: (state: State) => boolean): this;
  spread<To extends keyof Items>(
    from: Nodes | keyof Items | Start,
    to: To,
    items: (state: State) => readonly Items[To][],
  ): this;
  /** `to` runs once all of `from` have done their part, or can no longer be reached. Leads there by itself. */
  join(from: readonly (Nodes | keyof Items)[], to: Nodes): this;
}

export type WithNode<G, N extends string, Item, R> =
  G extends Graph<infer Name, infer S, infer C, infer O, infer Nodes, infer Items, infer Gotos, infer M>
    ? [Item] extends [void]
      ? Graph<Name, S, C, O, Nodes | N, Items, Gotos | GotoOf<R>, M>
      : Graph<Name, S, C, O, Nodes, Items & { [K in N]: Item }, Gotos | GotoOf<R>, M>
    : never;

/** What a graph takes from outside, and shows. */
export type GraphPorts = Record<string, PromisePort<any> | Stream<any>>;

/** Options of `graph`. */
export interface GraphOptions<C, Output, M> {
  state: C;
  output?: (state: Values<C>) => Output;
  /** What runs take from outside and show: `promise()` and `stream()` by name. */
  ports?: M;
  /** A whole number, default 1: a run is pinned to the version that started it. */
  version?: number;
  /** A run that takes more steps fails; default 1,000. */
  maxSteps?: number;
  /** Nodes of one run at work at once; default 8. */
  maxConcurrentNodes?: number;
  /** Items of one step in memory at once; default 1,024. */
  queueDepth?: number;
  /** How long admission may wait before the run is paused. */
  backpressureTimeout?: Duration;
  /** For the whole run, from its start; a start may say otherwise. */
  deadline?: Duration;
  /** Where its runs wait; a run has its place from when it begins until it ends. */
  queue?: Queue;
  /** What the queue's limits per key count by. */
  key?: (input: Changes<C>) => string;
  /** Only workers that have this label take it; default: any worker. */
  label?: string;
  /** In which order changes of one step are folded; default as written. */
  fold?: "written" | "order-key";
}

// ── what the engine runs ──

export interface GraphNode {
  readonly name: string;
  readonly run: (ctx: NodeContext, state: unknown, item: unknown) => unknown;
  readonly policy: Policy;
  readonly effects: Effects;
  readonly idempotencyKey: ((state: unknown, item: unknown) => string) | undefined;
}

/** In the order written: its place among its node's edges is the edge index (G1). */
export type GraphEdge =
  | {
      readonly edge: "to";
      readonly targets: readonly (string | End)[];
      readonly when: ((state: unknown) => boolean) | undefined;
      /** Written as a join: the way of a node that has no edge of its own to it. */
      readonly ofJoin?: true;
    }
  | { readonly edge: "spread"; readonly target: string; readonly items: (state: unknown) => readonly unknown[] };

export interface GraphBody {
  readonly name: string;
  readonly version: number;
  readonly channels: Channels;
  readonly output: ((state: unknown) => unknown) | undefined;
  readonly ports: Ports;
  readonly maxSteps: number;
  readonly maxConcurrentNodes: number;
  readonly queueDepth: number;
  readonly backpressureTimeoutMs: number | undefined;
  readonly deadlineMs: number | undefined;
  readonly line: LineOptions | undefined;
  readonly label: string | undefined;
  readonly fold: "written" | "order-key";
  readonly nodes: ReadonlyMap<string, GraphNode>;
  /** By node; START under "". */
  readonly edges: ReadonlyMap<string, readonly GraphEdge[]>;
  /** The nodes each join waits for. */
  readonly joins: ReadonlyMap<string, readonly string[]>;
  /** The nodes that take the items of a spread. */
  readonly itemNodes: ReadonlySet<string>;
}

export const MAX_STEPS = 1_000;
export const MAX_CONCURRENT_NODES = 8;
export const QUEUE_DEPTH = 1_024;

const BODY = Symbol("reprise.graph");

/** D2. The part of a graph the engine runs. */
export function graphBody(definition: unknown): GraphBody {
  const make = (definition as { [BODY]?: () => GraphBody } | null | undefined)?.[BODY];
  if (make === undefined)
    throw new RepriseError("UNKNOWN_DEFINITION", "Expected a graph made by graph(), got another object.");
  return make();
}

export function isGraph(value: unknown): boolean {
  return typeof value === "object" && value !== null && BODY in value;
}

interface Draft {
  readonly name: string;
  readonly options: GraphOptions<Channels, unknown, Ports>;
  readonly nodes: ReadonlyMap<string, GraphNode>;
  readonly edges: ReadonlyMap<string, readonly GraphEdge[]>;
  readonly joins: ReadonlyMap<string, readonly string[]>;
}

/**
 * Defines a graph: nodes over shared state, run step by step, with a checkpoint after every step.
 *
 * @example
 * ```ts
 * import { append, END, graph, START } from "reprise";
 * const echo = graph("echo", { state: { words: append<string>() } })
 *   .node("say", async (_ctx, state) => ({ words: [`${state.words.length}`] }))
 *   .edge(START, "say")
 *   .edge("say", END, (state) => state.words.length >= 3)
 *   .edge("say", "say");
 * ```
 */
export function graph<const Name extends string, C extends Channels, Output = Values<C>, M extends GraphPorts = {}>(
  name: Name,
  options: GraphOptions<C, Output, M>,
): Graph<Name, Values<C>, Changes<C>, Output, never, {}, never, M> {
  checkName(name, "graph name");
  checkOptions(name, options);
  const empty: Draft = {
    name,
    options: options as unknown as Draft["options"],
    nodes: new Map(),
    edges: new Map(),
    joins: new Map(),
  };
  return builder(empty) as unknown as Graph<Name, Values<C>, Changes<C>, Output, never, {}, never, M>;
}

function builder(draft: Draft): object {
  let body: GraphBody | undefined;
  return Object.freeze({
    kind: "graph",
    name: draft.name,
    node: (name: string, ...rest: readonly unknown[]) => builder(withNode(draft, name, rest)),
    edge: (from: unknown, to: unknown, when?: unknown) => builder(withEdge(draft, from, edgeOf(draft, from, to, when))),
    spread: (from: unknown, to: string, items: unknown) => {
      checkNode(draft, to, "spread to");
      checkFunction(items, `Graph ${draft.name}: spread to ${to}`);
      return builder(withEdge(draft, from, { edge: "spread", target: to, items: items as never }));
    },
    join: (from: readonly string[], to: string) => builder(withJoin(draft, from, to)),
    [BODY]: () => (body ??= checkGraph(bodyOf(draft))),
  });
}

function bodyOf({ name, options, nodes, edges, joins }: Draft): GraphBody {
  const ms = (duration: Duration | undefined, what: string): number | undefined =>
    duration === undefined ? undefined : toMs(duration, `Graph ${name}: ${what}`);
  return {
    name,
    version: options.version ?? 1,
    channels: options.state,
    output: options.output as GraphBody["output"],
    ports: options.ports ?? {},
    maxSteps: options.maxSteps ?? MAX_STEPS,
    maxConcurrentNodes: options.maxConcurrentNodes ?? MAX_CONCURRENT_NODES,
    queueDepth: options.queueDepth ?? QUEUE_DEPTH,
    backpressureTimeoutMs: ms(options.backpressureTimeout, "backpressureTimeout"),
    deadlineMs: options.deadline === undefined ? undefined : checkDeadline(options.deadline, `Graph ${name}`),
    line: lineOptions(options, `Graph ${name}`),
    label: labelOption(options, `Graph ${name}`),
    fold: options.fold ?? "written",
    nodes,
    edges: new Map([...edges].map(([from, written]) => [from, withoutSpareJoins(written)])),
    joins,
    itemNodes: new Set([...edges.values()].flat().flatMap((edge) => (edge.edge === "spread" ? [edge.target] : []))),
  };
}

/** D3 */
function withoutSpareJoins(edges: readonly GraphEdge[]): readonly GraphEdge[] {
  const own = edges.flatMap((edge) => (edge.edge === "to" && edge.ofJoin === undefined ? edge.targets : []));
  return edges.filter((edge) => edge.edge !== "to" || edge.ofJoin === undefined || !own.includes(edge.targets[0]!));
}

function withNode(draft: Draft, name: string, rest: readonly unknown[]): Draft {
  const what = `Graph ${draft.name}: node ${name}`;
  checkName(name, `Graph ${draft.name}: node name`);
  if (draft.nodes.has(name)) throw new RepriseError("BAD_GRAPH", `${what} is there already. Give it another name.`);
  const run = rest.at(-1);
  checkFunction(run, what);
  const options = checkNodeOptions(rest.length === 1 ? {} : rest[0], what);
  const node: GraphNode = { name, run: run as GraphNode["run"], ...options };
  return { ...draft, nodes: new Map([...draft.nodes, [name, node]]) };
}

function edgeOf(draft: Draft, from: unknown, to: unknown, when: unknown): GraphEdge {
  const targets = (Array.isArray(to) ? to : [to]) as (string | End)[];
  const what = `edge from ${nameOf(from)} to`;
  if (targets.length === 0)
    throw new RepriseError("BAD_GRAPH", `Graph ${draft.name}: ${what} an empty list. Name at least one node.`);
  for (const target of targets) if (target !== END) checkNode(draft, target, what);
  const twice = targets.find((target, index) => targets.indexOf(target) < index);
  if (twice !== undefined)
    throw new RepriseError("BAD_GRAPH", `Graph ${draft.name}: ${what} ${nameOf(twice)} twice. Once is enough.`);
  if (when !== undefined)
    checkFunction(when, `Graph ${draft.name}: condition of the ${what} ${targets.map(nameOf).join(", ")}`);
  return { edge: "to", targets, when: when as (state: unknown) => boolean };
}

function withEdge(draft: Draft, from: unknown, edge: GraphEdge): Draft {
  const key = from === START ? "" : String(from);
  if (from !== START) checkNode(draft, from, "edge from");
  return { ...draft, edges: new Map([...draft.edges, [key, [...(draft.edges.get(key) ?? []), edge]]]) };
}

function withJoin(draft: Draft, from: readonly string[], to: string): Draft {
  checkNode(draft, to, "join to");
  if (!Array.isArray(from) || from.length === 0)
    throw new RepriseError("BAD_GRAPH", `Graph ${draft.name}: join to ${to}: expected a list of nodes to wait for.`);
  if (from.includes(to))
    throw new RepriseError("BAD_GRAPH", `Graph ${draft.name}: join to ${to}: it cannot wait for itself.`);
  for (const name of from) checkNode(draft, name, `join to ${to}: from`);
  if (draft.joins.has(to))
    throw new RepriseError(
      "BAD_GRAPH",
      `Graph ${draft.name}: node ${to} has a join already. Name all it waits for in one.`,
    );
  const names: readonly string[] = [...new Set<string>(from)];
  const joined: Draft = { ...draft, joins: new Map([...draft.joins, [to, names]]) };
  const edge: GraphEdge = { edge: "to", targets: [to], when: undefined, ofJoin: true };
  return names.reduce((made, name) => withEdge(made, name, edge), joined);
}

function nameOf(target: unknown): string {
  if (target === START) return "START";
  return target === END ? "END" : String(target);
}

function checkNode(draft: Draft, name: unknown, what: string): void {
  if (typeof name === "string" && draft.nodes.has(name)) return;
  const known = [...draft.nodes.keys()].join(", ") || "none";
  // Those of LangGraph.js are strings.
  const marks = name === "__start__" || name === "__end__" ? " Import START and END from reprise." : "";
  throw new RepriseError(
    "BAD_GRAPH",
    `Graph ${draft.name}: ${what} ${nameOf(name)}: there is no such node. Its nodes so far are: ${known}. Nodes come before edges.${marks}`,
  );
}
