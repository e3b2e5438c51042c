// Ports: what a run accepts and shows, typed on both sides by one declaration.

import type { Schema } from "./schema.ts";

export interface Signal<T> {
  readonly port: "signal";
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

export type Ports = Record<string, Signal<any> | PromisePort<any> | Query<any, any> | Update<any, any> | Stream<any>>;
export type Named<M, Kind> = { [K in keyof M]: M[K] extends { port: Kind } ? K : never }[keyof M] & string;
export type Payload<P> =
  P extends Signal<infer T> ? T : P extends PromisePort<infer T> ? T : P extends Stream<infer T> ? T : never;
/** A wait that ran out gives `undefined`; a port without payload gives `true` when it came. */
export type Timed<T> = ([T] extends [void] ? true : T) | undefined;
