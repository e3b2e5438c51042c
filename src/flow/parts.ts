// What a flow knows of its values while it is written: each node adds a part, and later nodes see the names above them.

import type { Awaitable, Definition, Policy, Queue, Task, TaskContext } from "../kernel/index.ts";

/** One named value of a flow; `Maybe` when a branch may skip it. A union of parts: intersections fail near 97 nodes. */
export interface Part<Name extends string, Value, Maybe extends boolean = false> {
  readonly name: Name;
  readonly value: Value;
  readonly maybe: Maybe;
}
export type AnyPart = Part<string, any, boolean>;

/** Carries the parts of a branch out of it. */
export interface Scope<P> {
  readonly "~parts"?: P;
}

type Names<P extends AnyPart> = readonly P["name"][];
type ValueOf<P extends AnyPart, K> = Extract<P, { name: K }>["value"];
type MaybeOf<P extends AnyPart, K> = Extract<P, { name: K; maybe: true }>["name"];
/** One need: skipped with it. Several: those that a branch may skip are `| undefined`. */
export type Given<P extends AnyPart, N extends readonly string[]> = N extends readonly [infer One extends string]
  ? { readonly [K in One]: ValueOf<P, K> }
  : { readonly [K in N[number]]: ValueOf<P, K> | ([MaybeOf<P, K>] extends [never] ? never : undefined) };
/** The output is derived even when all it needs was skipped. */
type GivenAtEnd<P extends AnyPart, N extends readonly string[]> = {
  readonly [K in N[number]]: ValueOf<P, K> | ([MaybeOf<P, K>] extends [never] ? never : undefined);
};
type AllMaybe<P extends AnyPart, N extends readonly string[]> = [N[number]] extends [never]
  ? false
  : [Exclude<N[number], MaybeOf<P, N[number]>>] extends [never]
    ? true
    : false;
/** What a node needs, alone or with its options. */
export type Needs<N, O = {}> = N | ({ needs: N } & O);
type Skippable<P extends AnyPart> = P extends Part<infer N, infer T, any> ? Part<N, T, true> : never;
type With<F, New extends AnyPart> =
  F extends FlowBuilder<infer Name, infer Input, infer P, infer Whens>
    ? FlowBuilder<Name, Input, P | New, Whens>
    : never;
type Fresh<N extends string, Taken> = N extends Taken ? `"${N}" is already taken` : N;

/** What may be said of an action beside what it needs: retries, a time limit, a queue, a label, what to do when it has failed. */
export type ActionOptions<P extends AnyPart, R extends readonly string[], T> = Policy & {
  queue?: Queue;
  /** Only workers that have this label take it; default: the flow's. */
  label?: string;
  /** Gives the value instead, when all attempts have failed. */
  catch?: (error: Error, given: Given<P, R>) => NoInfer<T>;
};

/** What may be said of a spread beside what it needs: how wide, what a failure means, retries and time limit per item. */
export interface SpreadOptions<Settle extends boolean> extends Policy {
  /** Items at work or waiting for a worker at once. */
  concurrency?: number;
  /** A failed item stands in the result as such, instead of failing the run. */
  settle?: Settle;
  queue?: Queue;
  /** Only workers that have this label take it; default: the flow's. */
  label?: string;
}

/** A flow being written: nodes may need what stands above them, and `output` makes it a definition. */
export interface FlowBuilder<
  Name extends string,
  Input,
  P extends AnyPart,
  Whens extends string = never,
> extends Scope<P> {
  /** Runs on a worker the moment what it needs is there. */
  action<const N extends string, const R extends Names<P>, T>(
    name: Fresh<N, P["name"]>,
    needs: Needs<R, ActionOptions<P, R, T>>,
    run: (ctx: TaskContext, given: Given<P, R>) => Awaitable<T>,
  ): With<this, Part<N, T, AllMaybe<P, R>>>;
  /** Derives a value in memory: a pure function of what it needs. */
  inline<const N extends string, const R extends Names<P>, T>(
    name: Fresh<N, P["name"]>,
    needs: R,
    derive: (given: Given<P, R>) => T,
  ): With<this, Part<N, T, AllMaybe<P, R>>>;
  /** Runs another definition as a child, or a task, and has its output as value. */
  call<const N extends string, const R extends Names<P>, I, O>(
    name: Fresh<N, P["name"]>,
    needs: Needs<R, Policy>,
    definition: Definition<string, I, O> | Task<string, I, O>,
    input: (given: Given<P, R>) => NoInfer<I>,
  ): With<this, Part<N, O, AllMaybe<P, R>>>;
  /** Runs once per item; its value is the list of results, in the order of the items. */
  spread<const N extends string, const R extends Names<P>, Item, T, const Settle extends boolean = false>(
    name: Fresh<N, P["name"]>,
    needs: Needs<R, SpreadOptions<Settle>>,
    items: (given: Given<P, R>) => readonly Item[],
    run:
      | ((ctx: TaskContext, item: Item, index: number) => Awaitable<T>)
      | Task<string, Item, T>
      | Definition<string, Item, T>,
  ): With<this, Part<N, Settle extends true ? readonly PromiseSettledResult<T>[] : readonly T[], AllMaybe<P, R>>>;
  /** Runs several actions at once; its value has each one's result under its name. */
  parallel<const N extends string, const R extends Names<P>, T extends Record<string, unknown>>(
    name: Fresh<N, P["name"]>,
    needs: Needs<R, Policy>,
    runs: { [K in keyof T]: (ctx: TaskContext, given: Given<P, R>) => Awaitable<T[K]> },
  ): With<this, Part<N, { readonly [K in keyof T]: T[K] }, AllMaybe<P, R>>>;
  /** The nodes of `then` run when the test holds, and are skipped when it does not. */
  when<const N extends string, const R extends Names<P>, P2 extends AnyPart>(
    name: Fresh<N, Whens>,
    needs: R,
    test: (given: Given<P, R>) => boolean,
    then: (branch: FlowBuilder<Name, Input, P>) => Scope<P2>,
  ): FlowBuilder<Name, Input, P | Skippable<Exclude<P2, P>>, Whens | N>;
  /** The other side of the `when` of this name. */
  otherwise<P2 extends AnyPart>(
    name: Whens,
    then: (branch: FlowBuilder<Name, Input, P>) => Scope<P2>,
  ): FlowBuilder<Name, Input, P | Skippable<Exclude<P2, P>>, Whens>;
  /** What the run gives; a flow has one. */
  output<const R extends Names<P>, T>(needs: R, derive: (given: GivenAtEnd<P, R>) => T): Flow<Name, Input, T>;
}

/** A finished flow: registered, started and called like every definition. */
export interface Flow<Name extends string, Input, Output> extends Definition<Name, Input, Output, {}, never> {
  readonly kind: "flow";
}
