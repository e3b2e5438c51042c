// Graph definition: the builder of graphs, and the body that the engine runs.
//
// graph.D1. The builder checks names: an edge to an unknown node does not compile, and the builder throws at run time.
// graph.D2. `graphBody` checks a complete graph once, before a run starts.
// graph.D3. A join adds an edge from every node it waits for, at its place among their edges. A node with an explicit edge
//   to the join uses that one instead.
// graph.D4. Definitions, START and END carry `Symbol.for` brands, so that two copies of the package accept each other's.

import { checkName, RepriseError, toMs, type Duration } from "../base/index.ts";
import {
  checkBudget,
  checkDeadline,
  checkRetention,
  labelOption,
  checkQueueSlot,
  type Awaitable,
  type BudgetCap,
  type BudgetOptions,
  type Definition,
  type QueueSlotOptions,
  type Policy,
  type Ports,
  type PromisePort,
  type Queue,
  type Retention,
  type RetentionMs,
  type Stream,
} from "../kernel/index.ts";
import type { Channels, ChannelChanges, ChannelValues } from "./channel.ts";
import { checkGraph } from "./check-graph.ts";
import { checkFunction, checkNodeOptions, checkOptions } from "./check-options.ts";
import type { NodeContext } from "./node-context.ts";

// graph.D4
const START_BRAND = Symbol.for("reprise.graph.start");
const END_BRAND = Symbol.for("reprise.graph.end");

/** The type of `START`. */
export interface Start {
  readonly start: true;
}
/**
 * The entry point of a graph: edges from it lead to the first nodes.
 *
 * @example
 * ```ts
 * import { graph, START } from "reprise";
 * const hello = graph("hello", { state: {} }).node("greet", async () => {}).edge(START, "greet");
 * ```
 */
export const START: Start = Object.freeze({ start: true, [START_BRAND]: true });

export function isStart(value: unknown): value is Start {
  return typeof value === "object" && value !== null && START_BRAND in value;
}

/** The type of `END`. */
export interface End {
  readonly end: true;
}
/**
 * The end of a graph: a branch that reaches it is complete.
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
export const END: End = Object.freeze({ end: true, [END_BRAND]: true });

export function isEnd(value: unknown): value is End {
  return typeof value === "object" && value !== null && END_BRAND in value;
}

/** The node that a run continues with, and the changes of the node that chose it. */
export interface Goto<To, Change> {
  readonly goto: To;
  readonly change?: Change;
}

/**
 * The result of a node that chooses the next node in its code. It takes precedence over the node's edges.
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

type UnknownChannel<R, Change> =
  R extends Goto<any, infer U>
    ? Exclude<keyof U, keyof Change>
    : R extends object
      ? Exclude<keyof R, keyof Change>
      : never;
type KnownChannels<R, Change> = [UnknownChannel<R, Change>] extends [never]
  ? unknown
  : `no channel named "${UnknownChannel<R, Change> & string}"`;
type UnusedNodeName<N extends string, Taken> = N extends Taken ? `"${N}" is already taken` : N;
/** The result of a node that always throws is `any`, which names no node. */
type GotoOf<R> = R extends Goto<infer To, any> ? (0 extends 1 & To ? never : Extract<To, string>) : never;

/** The side effects of a node, for retry and replay. */
export interface NodeEffects {
  /** Default true. False: the result depends on more than state, item and `ctx`, so a replay uses the recorded result. */
  recordable?: boolean;
  /** The node calls services that need an idempotency key, so `idempotencyKey` is required. */
  requiresIdempotency?: boolean;
}
/** Options of a node. `idempotencyKey` makes `ctx.idempotencyKey`, which is the same for every attempt of an item. */
export type NodeOptions<S, Item = any> = Policy &
  (
    | { effects?: NodeEffects & { requiresIdempotency?: false } }
    | { effects: NodeEffects & { requiresIdempotency: true }; idempotencyKey: (state: S, item: Item) => string }
  );

type NodeFunction<M, State, Item, R, Change> = (
  ctx: NodeContext<M>,
  state: State,
  item: Item,
) => Awaitable<R & KnownChannels<R, Change>>;

type KeyTakesItem<Item, KeyItem> = [Item] extends [KeyItem]
  ? unknown
  : "idempotencyKey takes another item than the node";

/** A graph under construction, and a definition. `Nodes` are reached by edges; `Items` by a spread, with their items. */
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
  /** A graph with a `goto` to an unknown node is not a definition. */
  readonly kind: [Exclude<Gotos, Nodes>] extends [never] ? "graph" : `goto: no node named "${Exclude<Gotos, Nodes>}"`;
  /** Adds a node: a function that reads the state and returns changes of it, or a `goto`. */
  node<const N extends string, R extends Change | Goto<any, Change> | void, Item = void>(
    name: UnusedNodeName<N, Nodes | keyof Items>,
    run: NodeFunction<M, State, Item, R, Change>,
  ): WithNode<this, N, Item, R>;
  /** Adds a node with options, such as a retry policy. */
  node<const N extends string, R extends Change | Goto<any, Change> | void, Item = void, KeyItem = any>(
    name: UnusedNodeName<N, Nodes | keyof Items>,
    // Not `Item`: an `idempotencyKey` that leaves its item untyped would fix it before TypeScript reads the function.
    options: NodeOptions<State, KeyItem>,
    run: NodeFunction<M, State, Item, R, Change> & KeyTakesItem<Item, KeyItem>,
  ): WithNode<this, N, Item, R>;
  /** Adds an edge. The first edge of a node whose `when` is true is taken; an array leads to several nodes at once. */
  edge(from: Nodes | keyof Items | Start, to: Nodes | End | readonly Nodes[], when?: (state: State) => boolean): this;
  /** Runs `to` once per element of the list that `items` returns; the node gets the element as its third argument. */
  spread<To extends keyof Items>(
    from: Nodes | keyof Items | Start,
    to: To,
    items: (state: State) => readonly Items[To][],
  ): this;
  /** `to` runs once every node of `from` has arrived or can no longer be reached. Adds the edges from them to `to`. */
  join(from: readonly (Nodes | keyof Items)[], to: Nodes): this;
}

export type WithNode<G, N extends string, Item, R> =
  G extends Graph<infer Name, infer S, infer C, infer O, infer Nodes, infer Items, infer Gotos, infer M>
    ? [Item] extends [void]
      ? Graph<Name, S, C, O, Nodes | N, Items, Gotos | GotoOf<R>, M>
      : Graph<Name, S, C, O, Nodes, Items & { [K in N]: Item }, Gotos | GotoOf<R>, M>
    : never;

/** The promises a graph waits for and the streams it emits, by name. */
export type GraphPorts = Record<string, PromisePort<any> | Stream<any>>;

/** Options of `graph`. */
export interface GraphOptions<C, Output, M> {
  state: C;
  output?: (state: ChannelValues<C>) => Output;
  /** `promise()` and `stream()` by name. */
  ports?: M;
  /** A whole number, default 1: a run is pinned to the version that started it. */
  version?: number;
  /** A run that takes more steps fails; default 1,000. */
  maxSteps?: number;
  /** How many nodes of one run execute concurrently; default 8. */
  maxConcurrentNodes?: number;
  /** How many items of one step are queued for a slot; default 1,024. Further items of the step are admitted as items start. */
  queueDepth?: number;
  /** Limits one attempt of a node that has no `timeout` of its own; default 30 s. */
  defaultNodeTimeout?: Duration;
  /** How long an item may wait for room before the run is paused. */
  backpressureTimeout?: Duration;
  /** For the whole run, from its start; `start` can override it. */
  deadline?: Duration;
  /** How long ended runs are kept, from their end; workers then delete them. Default: that of the engine. */
  retention?: Retention;
  /** What a run and its children may cost; `start` can override it. Default: no budget. */
  budget?: BudgetOptions;
  /** The queue its runs wait in; a run holds its slot until it ends. */
  queue?: Queue;
  /** The key for the queue's limits per key. */
  key?: (input: ChannelChanges<C>) => string;
  /** Only workers with this label run it; default: any worker. */
  label?: string;
  /** The order in which the changes of one step are folded; default `"written"`. */
  fold?: "written" | "order-key";
}

// ── the body ──

export interface GraphNode {
  readonly name: string;
  readonly run: (ctx: NodeContext, state: unknown, item: unknown) => unknown;
  /** With the graph's default timeout. */
  readonly policy: Policy & { readonly timeout: Duration };
  readonly effects: NodeEffects;
  readonly idempotencyKey: ((state: unknown, item: unknown) => string) | undefined;
}

/** Its place among its node's edges, in written order, is the edge index (rules.G1). */
export type GraphEdge =
  | {
      readonly edge: "to";
      readonly targets: readonly (string | End)[];
      readonly when: ((state: unknown) => boolean) | undefined;
      /** Added by a join (graph.D3). */
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
  readonly retention: RetentionMs | undefined;
  readonly budget: BudgetCap | undefined;
  readonly slotOptions: QueueSlotOptions | undefined;
  readonly label: string | undefined;
  readonly fold: "written" | "order-key";
  readonly nodes: ReadonlyMap<string, GraphNode>;
  /** By node; those from START under "". */
  readonly edges: ReadonlyMap<string, readonly GraphEdge[]>;
  /** The nodes each join waits for. */
  readonly joins: ReadonlyMap<string, readonly string[]>;
  /** The nodes that run once per item of a spread. */
  readonly itemNodes: ReadonlySet<string>;
}

export const MAX_STEPS = 1_000;
export const MAX_CONCURRENT_NODES = 8;
export const QUEUE_DEPTH = 1_024;
const NODE_TIMEOUT_MS = 30_000;

// graph.D4
const BODY = Symbol.for("reprise.graph");

/** graph.D2 */
export function graphBody(definition: unknown): GraphBody {
  const make = (definition as { [BODY]?: () => GraphBody } | null | undefined)?.[BODY];
  if (make === undefined)
    throw new RepriseError("UNKNOWN_DEFINITION", "Expected a graph made by graph(), got a different object.");
  return make();
}

export function isGraph(value: unknown): boolean {
  return typeof value === "object" && value !== null && BODY in value;
}

interface GraphDraft {
  readonly name: string;
  readonly options: GraphOptions<Channels, unknown, Ports>;
  readonly nodes: ReadonlyMap<string, DraftNode>;
  readonly edges: ReadonlyMap<string, readonly GraphEdge[]>;
  readonly joins: ReadonlyMap<string, readonly string[]>;
}

type DraftNode = Omit<GraphNode, "policy"> & { readonly policy: Policy };

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
export function graph<
  const Name extends string,
  C extends Channels,
  Output = ChannelValues<C>,
  M extends GraphPorts = {},
>(
  name: Name,
  options: GraphOptions<C, Output, M>,
): Graph<Name, ChannelValues<C>, ChannelChanges<C>, Output, never, {}, never, M> {
  checkName(name, "graph name");
  checkOptions(name, options);
  const empty: GraphDraft = {
    name,
    options: options as unknown as GraphDraft["options"],
    nodes: new Map(),
    edges: new Map(),
    joins: new Map(),
  };
  return builder(empty) as unknown as Graph<Name, ChannelValues<C>, ChannelChanges<C>, Output, never, {}, never, M>;
}

function builder(draft: GraphDraft): object {
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

function bodyOf({ name, options, nodes, edges, joins }: GraphDraft): GraphBody {
  const ms = (duration: Duration | undefined, what: string): number | undefined =>
    duration === undefined ? undefined : toMs(duration, `Graph ${name}: ${what}`);
  const timeout = ms(options.defaultNodeTimeout, "defaultNodeTimeout") ?? NODE_TIMEOUT_MS;
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
    retention: options.retention === undefined ? undefined : checkRetention(options.retention, `Graph ${name}`),
    budget: options.budget === undefined ? undefined : checkBudget(options.budget, `Graph ${name}`),
    slotOptions: checkQueueSlot(options, `Graph ${name}`),
    label: labelOption(options, `Graph ${name}`),
    fold: options.fold ?? "written",
    nodes: new Map([...nodes].map(([id, node]) => [id, { ...node, policy: { timeout, ...node.policy } }])),
    edges: new Map([...edges].map(([from, written]) => [from, withoutOverriddenJoins(written)])),
    joins,
    itemNodes: new Set([...edges.values()].flat().flatMap((edge) => (edge.edge === "spread" ? [edge.target] : []))),
  };
}

/** graph.D3 */
function withoutOverriddenJoins(edges: readonly GraphEdge[]): readonly GraphEdge[] {
  const explicit = edges.flatMap((edge) => (edge.edge === "to" && edge.ofJoin === undefined ? edge.targets : []));
  return edges.filter(
    (edge) => edge.edge !== "to" || edge.ofJoin === undefined || !explicit.includes(edge.targets[0]!),
  );
}

function withNode(draft: GraphDraft, name: string, rest: readonly unknown[]): GraphDraft {
  const what = `Graph ${draft.name}: node ${name}`;
  checkName(name, `Graph ${draft.name}: node name`);
  if (draft.nodes.has(name)) throw new RepriseError("BAD_GRAPH", `${what} already exists. Choose another name.`);
  const run = rest.at(-1);
  checkFunction(run, what);
  const options = checkNodeOptions(rest.length === 1 ? {} : rest[0], what);
  const node: DraftNode = { name, run: run as GraphNode["run"], ...options };
  return { ...draft, nodes: new Map([...draft.nodes, [name, node]]) };
}

function edgeOf(draft: GraphDraft, from: unknown, to: unknown, when: unknown): GraphEdge {
  const targets = (Array.isArray(to) ? to : [to]) as (string | End)[];
  const what = `edge from ${nameOf(from)} to`;
  if (targets.length === 0)
    throw new RepriseError("BAD_GRAPH", `Graph ${draft.name}: ${what} an empty list. Name at least one node.`);
  for (const target of targets) if (!isEnd(target)) checkNode(draft, target, what);
  const twice = targets.find((target, index) => targets.indexOf(target) < index);
  if (twice !== undefined)
    throw new RepriseError("BAD_GRAPH", `Graph ${draft.name}: ${what} ${nameOf(twice)} twice. Name each target once.`);
  if (when !== undefined)
    checkFunction(when, `Graph ${draft.name}: condition of the ${what} ${targets.map(nameOf).join(", ")}`);
  return { edge: "to", targets, when: when as (state: unknown) => boolean };
}

function withEdge(draft: GraphDraft, from: unknown, edge: GraphEdge): GraphDraft {
  const key = isStart(from) ? "" : String(from);
  if (!isStart(from)) checkNode(draft, from, "edge from");
  return { ...draft, edges: new Map([...draft.edges, [key, [...(draft.edges.get(key) ?? []), edge]]]) };
}

function withJoin(draft: GraphDraft, from: readonly string[], to: string): GraphDraft {
  checkNode(draft, to, "join to");
  if (!Array.isArray(from) || from.length === 0)
    throw new RepriseError(
      "BAD_GRAPH",
      `Graph ${draft.name}: join to ${to}: expected a list of the nodes it waits for, such as ["a", "b"].`,
    );
  if (from.includes(to))
    throw new RepriseError(
      "BAD_GRAPH",
      `Graph ${draft.name}: join to ${to}: a node cannot wait for itself. Remove ${to} from the list.`,
    );
  for (const name of from) checkNode(draft, name, `join to ${to}: from`);
  if (draft.joins.has(to))
    throw new RepriseError(
      "BAD_GRAPH",
      `Graph ${draft.name}: node ${to} already has a join. List every node it waits for in one call of .join().`,
    );
  const names: readonly string[] = [...new Set<string>(from)];
  const joined: GraphDraft = { ...draft, joins: new Map([...draft.joins, [to, names]]) };
  const edge: GraphEdge = { edge: "to", targets: [to], when: undefined, ofJoin: true };
  return names.reduce((made, name) => withEdge(made, name, edge), joined);
}

function nameOf(target: unknown): string {
  if (isStart(target)) return "START";
  return isEnd(target) ? "END" : String(target);
}

function checkNode(draft: GraphDraft, name: unknown, what: string): void {
  if (typeof name === "string" && draft.nodes.has(name)) return;
  const known = [...draft.nodes.keys()].join(", ") || "none";
  // In LangGraph.js these are strings.
  const marks = name === "__start__" || name === "__end__" ? " Import START and END from reprise." : "";
  throw new RepriseError(
    "BAD_GRAPH",
    `Graph ${draft.name}: ${what} ${nameOf(name)}: no node has this name. Nodes defined so far: ${known}. Call .node() before the edges that use it.${marks}`,
  );
}
