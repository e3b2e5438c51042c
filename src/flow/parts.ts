// Parts: the types of a flow builder. Each node adds a part; later nodes can need the names of earlier ones.

import type { Duration } from "../base/index.ts";
import type {
  Awaitable,
  BudgetOptions,
  Definition,
  KeyFunction,
  Policy,
  Queue,
  Retention,
  Schema,
  Task,
  TaskContext,
  TaskCost,
} from "../kernel/index.ts";

/** One named value of a flow; `Maybe` if a branch can skip it. Parts form a union: intersections fail near 97 nodes. */
export interface FlowPart<Name extends string, Value, Maybe extends boolean = false> {
  readonly name: Name;
  readonly value: Value;
  readonly maybe: Maybe;
}
export type AnyPart = FlowPart<string, any, boolean>;

/** Carries the parts of a branch to the builder around it. */
export interface Scope<P> {
  readonly "~parts"?: P;
}

type Names<P extends AnyPart> = readonly P["name"][];
type ValueOf<P extends AnyPart, K> = Extract<P, { name: K }>["value"];
type MaybeOf<P extends AnyPart, K> = Extract<P, { name: K; maybe: true }>["name"];
/** A node with one need is skipped with it. Among several needs, those that a branch can skip are `| undefined`. */
export type NeededValues<P extends AnyPart, N extends readonly string[]> = N extends readonly [infer One extends string]
  ? { readonly [K in One]: ValueOf<P, K> }
  : { readonly [K in N[number]]: ValueOf<P, K> | ([MaybeOf<P, K>] extends [never] ? never : undefined) };
/** The output is derived even if everything it needs was skipped. */
type GivenAtEnd<P extends AnyPart, N extends readonly string[]> = {
  readonly [K in N[number]]: ValueOf<P, K> | ([MaybeOf<P, K>] extends [never] ? never : undefined);
};
type AllMaybe<P extends AnyPart, N extends readonly string[]> = [N[number]] extends [never]
  ? false
  : [Exclude<N[number], MaybeOf<P, N[number]>>] extends [never]
    ? true
    : false;
type Skippable<P extends AnyPart> = P extends FlowPart<infer N, infer T, any> ? FlowPart<N, T, true> : never;
type With<F, New extends AnyPart> =
  F extends FlowBuilder<infer Name, infer Input, infer P, infer Whens>
    ? FlowBuilder<Name, Input, P | New, Whens>
    : never;
type UnusedName<N extends string, Taken> = N extends Taken ? `"${N}" is already taken` : N;

/** Options of `flow`. */
export interface FlowOptions<Input, Parsed> {
  /** A Standard Schema (zod, valibot, arktype), or `typed<T>()`. */
  input: Schema<Input, Parsed>;
  /** A whole number, default 1: a run is pinned to the version that started it. */
  version?: number;
  /** For the whole run, from its start. */
  deadline?: Duration;
  /** How long ended runs are kept, from their end; workers then delete them. Default: that of the engine. */
  retention?: Retention;
  /** What a run and its children may cost; `start` can override it. Default: no budget. */
  budget?: BudgetOptions;
  /** Only workers with this label run it; a node can have its own label. Default: any worker. */
  label?: string;
}

/** Options of an action: retries, a time limit, a queue, a label, and a value for when all attempts fail. */
export type ActionOptions<P extends AnyPart, R extends readonly string[], T> = Policy & {
  queue?: Queue;
  /** The key for the queue's limits per key. */
  key?: (given: NeededValues<P, R>) => string;
  /** Only workers with this label run it; default: the flow's label. */
  label?: string;
  /** Returns the value to use after the last attempt has failed, unless it timed out. */
  catch?: (error: Error, given: NeededValues<P, R>) => NoInfer<T>;
  /** `catch` also handles a last attempt that timed out, whose call may still take effect. Default: false. */
  catchTimeouts?: boolean;
  /**
   * The version of the function, if it is pure: its value depends on its needs alone. A known value of the same flow, node, needs
   * and version is reused instead of a call.
   */
  pure?: string;
  /** What an execution costs, in runs with a budget. A `reserve` that is a function gets the needs. */
  cost?: TaskCost;
};

/** Options of a spread: concurrency, what a failed item means, retries and time limit per item. */
export interface SpreadOptions<Settle extends boolean> extends Policy {
  /** How many items are queued or running at the same time. */
  concurrency?: number;
  /** A failed item becomes a `rejected` entry of the result instead of failing the run. */
  settle?: Settle;
  queue?: Queue;
  /** The key of an item for the queue's limits per key. Annotate its parameter with the type of the items. */
  key?: KeyFunction;
  /** Only workers with this label run it; default: the flow's label. */
  label?: string;
  /** What an execution for one item costs, in runs with a budget. Default: the cost of the task. */
  cost?: TaskCost;
}

/** What a spread runs per item. */
type ItemRunner<Item, T> =
  | ((ctx: TaskContext, item: Item, index: number) => Awaitable<T>)
  | Task<string, Item, T>
  | Definition<string, Item, T>;

/**
 * A flow under construction. Every method takes a name, the names it needs, options where there are any, then the functions.
 * A node may need the names defined before it; `output` completes the definition.
 */
export interface FlowBuilder<
  Name extends string,
  Input,
  P extends AnyPart,
  Whens extends string = never,
> extends Scope<P> {
  /** Adds a value that user code computes on a worker, as soon as the values it needs exist. */
  action<const N extends string, const R extends Names<P>, T>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    run: (ctx: TaskContext, given: NeededValues<P, R>) => Awaitable<T>,
  ): With<this, FlowPart<N, T, AllMaybe<P, R>>>;
  /** Adds a value that user code computes on a worker, with options such as a retry policy or a queue. */
  action<const N extends string, const R extends Names<P>, T>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    options: ActionOptions<P, R, T>,
    run: (ctx: TaskContext, given: NeededValues<P, R>) => Awaitable<T>,
  ): With<this, FlowPart<N, T, AllMaybe<P, R>>>;
  /** Adds a value that a pure, synchronous function derives in memory. */
  inline<const N extends string, const R extends Names<P>, T>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    derive: (given: NeededValues<P, R>) => T,
  ): With<this, FlowPart<N, T, AllMaybe<P, R>>>;
  /** Adds the output of a task, or of another definition that runs as a child. */
  call<const N extends string, const R extends Names<P>, I, O>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    definition: Definition<string, I, O> | Task<string, I, O>,
    input: (given: NeededValues<P, R>) => NoInfer<I>,
  ): With<this, FlowPart<N, O, AllMaybe<P, R>>>;
  /** Adds the output of a task, with options. A child definition takes none, because it has its own. */
  call<const N extends string, const R extends Names<P>, I, O>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    options: Policy,
    definition: Definition<string, I, O> | Task<string, I, O>,
    input: (given: NeededValues<P, R>) => NoInfer<I>,
  ): With<this, FlowPart<N, O, AllMaybe<P, R>>>;
  /** Runs once per item; its value is the list of results, in the order of the items. */
  spread<const N extends string, const R extends Names<P>, Item, T>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    items: (given: NeededValues<P, R>) => readonly Item[],
    run: ItemRunner<Item, T>,
  ): With<this, FlowPart<N, readonly T[], AllMaybe<P, R>>>;
  /** Runs once per item, with options such as how many items run at the same time. */
  spread<const N extends string, const R extends Names<P>, Item, T, const Settle extends boolean = false>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    options: SpreadOptions<Settle>,
    items: (given: NeededValues<P, R>) => readonly Item[],
    run: ItemRunner<Item, T>,
  ): With<this, FlowPart<N, Settle extends true ? readonly PromiseSettledResult<T>[] : readonly T[], AllMaybe<P, R>>>;
  /** Runs several actions concurrently; its value has the result of each under its name. */
  parallel<const N extends string, const R extends Names<P>, T extends Record<string, unknown>>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    runs: { [K in keyof T]: (ctx: TaskContext, given: NeededValues<P, R>) => Awaitable<T[K]> },
  ): With<this, FlowPart<N, { readonly [K in keyof T]: T[K] }, AllMaybe<P, R>>>;
  /** Runs several actions concurrently, with options that apply to each of them. */
  parallel<const N extends string, const R extends Names<P>, T extends Record<string, unknown>>(
    name: UnusedName<N, P["name"]>,
    needs: R,
    options: Policy,
    runs: { [K in keyof T]: (ctx: TaskContext, given: NeededValues<P, R>) => Awaitable<T[K]> },
  ): With<this, FlowPart<N, { readonly [K in keyof T]: T[K] }, AllMaybe<P, R>>>;
  /** Adds the nodes of `then`: they run when the test is true, and are skipped otherwise. */
  when<const N extends string, const R extends Names<P>, P2 extends AnyPart>(
    name: UnusedName<N, Whens>,
    needs: R,
    test: (given: NeededValues<P, R>) => boolean,
    then: (branch: FlowBuilder<Name, Input, P>) => Scope<P2>,
  ): FlowBuilder<Name, Input, P | Skippable<Exclude<P2, P>>, Whens | N>;
  /** Adds the nodes that run when the test of the `when` with this name is false. */
  otherwise<P2 extends AnyPart>(
    name: Whens,
    then: (branch: FlowBuilder<Name, Input, P>) => Scope<P2>,
  ): FlowBuilder<Name, Input, P | Skippable<Exclude<P2, P>>, Whens>;
  /** Derives the output of a run, and completes the definition. */
  output<const R extends Names<P>, T>(needs: R, derive: (given: GivenAtEnd<P, R>) => T): Flow<Name, Input, T>;
}

/** A complete flow: registered, started and called like every other definition. */
export interface Flow<Name extends string, Input, Output> extends Definition<Name, Input, Output, {}, never> {
  readonly kind: "flow";
}
