// Ports: what a run accepts and shows, typed on both sides by one declaration.

import type { Schema } from "./schema.ts";

/** A message the run takes when it is ready for it, first in first out. */
export interface Signal<T> {
  readonly port: "signal";
  readonly schema?: Schema<any, T>;
  readonly "~t"?: T;
}
/** A value somebody outside the run will provide once. */
export interface PromisePort<T> {
  readonly port: "promise";
  readonly schema?: Schema<any, T>;
  readonly "~t"?: T;
}
export interface Query<Args, T> {
  readonly port: "query";
  readonly "~t"?: [Args, T];
}
export interface Update<Args, T> {
  readonly port: "update";
  readonly "~t"?: [Args, T];
}
export interface Stream<T> {
  readonly port: "stream";
  readonly "~t"?: T;
}

/**
 * Declares a value that somebody outside the run provides once.
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
 * Declares a message that anybody may send to the run, any number of times; the run takes them in the order they came.
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
 * Declares chunks a run shows while it goes on: `ctx.emit` writes them, `run.stream` reads them.
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

export type Ports = Record<string, Signal<any> | PromisePort<any> | Query<any, any> | Update<any, any> | Stream<any>>;
export type Named<M, Kind> = { [K in keyof M]: M[K] extends { port: Kind } ? K : never }[keyof M] & string;
export type Payload<P> =
  P extends Signal<infer T> ? T : P extends PromisePort<infer T> ? T : P extends Stream<infer T> ? T : never;
/** A wait that ran out gives `undefined`; a port without payload gives `true` when it came. */
export type Timed<T> = ([T] extends [void] ? true : T) | undefined;
/** What a wait for one of several signals gives: which one came, and what it carries. */
export type Received<M, K extends keyof M> = { [P in K]: { readonly name: P; readonly value: Payload<M[P]> } }[K];
