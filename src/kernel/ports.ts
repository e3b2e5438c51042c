// Ports: the messages that a run accepts and the values it exposes. One declaration types both sides.

import type { Schema } from "./schema.ts";

/** A message that the run reads when it is ready, first in first out. */
export interface Signal<T> {
  readonly port: "signal";
  readonly schema?: Schema<any, T>;
  readonly "~t"?: T;
}
/** A value that a caller provides once. */
export interface PromisePort<T> {
  readonly port: "promise";
  readonly schema?: Schema<any, T>;
  readonly "~t"?: T;
}
/** A question that the run's code answers from memory; the engine writes nothing. */
export interface Query<Args, T> {
  readonly port: "query";
  readonly "~t"?: [Args, T];
}
/** A message that the run's code handles and answers; the journal records the request and the answer. */
export interface Update<Args, T> {
  readonly port: "update";
  readonly schema?: Schema<any, Args>;
  readonly "~t"?: [Args, T];
}
/** Chunks that a run emits while it is in progress. */
export interface Stream<T> {
  readonly port: "stream";
  readonly "~t"?: T;
}

/**
 * Declares a value that a caller provides once.
 *
 * @example
 * ```ts
 * import { promise, workflow } from "reprise";
 * const review = workflow("review", { ports: { approval: promise<{ ok: boolean }>() } }, async (ctx) => {
 *   const approval = await ctx.promise("approval", { timeout: "2 days" });
 *   return approval?.ok ?? false;
 * });
 * ```
 */
export function promise(): PromisePort<void>;
export function promise<T>(schema?: Schema<any, T>): PromisePort<T>;
export function promise<T>(schema?: Schema<any, T>): PromisePort<T> {
  return schema === undefined ? { port: "promise" } : { port: "promise", schema };
}

/**
 * Declares a message that callers may send to the run any number of times; the run reads them in order.
 *
 * @example
 * ```ts
 * import { signal, workflow } from "reprise";
 * const cart = workflow("cart", { ports: { add: signal<string>(), checkout: signal() } }, async (ctx) => {
 *   const items: string[] = [];
 *   for (;;) {
 *     const message = await ctx.receive(["add", "checkout"], { timeout: "1 day" });
 *     if (message?.name !== "add") return items;
 *     items.push(message.value);
 *   }
 * });
 * ```
 */
export function signal(): Signal<void>;
export function signal<T>(schema?: Schema<any, T>): Signal<T>;
export function signal<T>(schema?: Schema<any, T>): Signal<T> {
  return schema === undefined ? { port: "signal" } : { port: "signal", schema };
}

/**
 * Declares chunks that a run emits while it is in progress: `ctx.emit` writes them, `run.stream` reads them.
 *
 * @example
 * ```ts
 * import { stream, workflow } from "reprise";
 * const report = workflow("report", { ports: { progress: stream<number>() } }, async (ctx) => {
 *   ctx.emit("progress", 0);
 *   await ctx.run("render", (op) => op.emit("progress", 50));
 *   ctx.emit("progress", 100);
 * });
 * ```
 */
export function stream<T>(): Stream<T> {
  return { port: "stream" };
}

/**
 * Declares a question to the run, also after its end. Its code answers immediately and changes nothing.
 *
 * @example
 * ```ts
 * import { query, workflow } from "reprise";
 * const count = workflow("count", { ports: { reached: query<number>() } }, async (ctx) => {
 *   let n = 0;
 *   ctx.onQuery("reached", () => n);
 *   for (; n < 10; n += 1) await ctx.sleep("1 hour");
 * });
 * ```
 */
export function query<T, Args = void>(): Query<Args, T> {
  return { port: "query" };
}

/**
 * Declares a message that the run's code handles and answers; the caller waits for the answer.
 *
 * @example
 * ```ts
 * import { update, workflow } from "reprise";
 * const account = workflow("account", { ports: { withdraw: update<number, number>() } }, async (ctx, cents: number) => {
 *   let left = cents;
 *   ctx.onUpdate("withdraw", (wanted) => {
 *     if (wanted > left) throw new Error("not enough");
 *     return (left -= wanted);
 *   });
 *   await ctx.sleep("30 days");
 *   return left;
 * });
 * ```
 */
export function update<Args, T = void>(schema?: Schema<any, Args>): Update<Args, T> {
  return schema === undefined ? { port: "update" } : { port: "update", schema };
}

export type Ports = Record<string, Signal<any> | PromisePort<any> | Query<any, any> | Update<any, any> | Stream<any>>;
export type PortNames<M, Kind> = { [K in keyof M]: M[K] extends { port: Kind } ? K : never }[keyof M] & string;
export type PayloadOf<P> =
  P extends Signal<infer T> ? T : P extends PromisePort<infer T> ? T : P extends Stream<infer T> ? T : never;
/** A wait that timed out returns `undefined`; a port without a payload returns `true`. */
export type TimedResult<T> = ([T] extends [void] ? true : T) | undefined;
/** The arguments of a query or an update. */
export type ArgumentsOf<P> = P extends Query<infer A, any> ? A : P extends Update<infer A, any> ? A : never;
export type AnswerOf<P> = P extends Query<any, infer T> ? T : P extends Update<any, infer T> ? T : never;
/** The result of a wait for one of several signals: its name and its payload. */
export type Received<M, K extends keyof M> = { [P in K]: { readonly name: P; readonly value: PayloadOf<M[P]> } }[K];
