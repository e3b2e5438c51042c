// Channels: the parts of a graph's state, each with the reducer that folds a change into its value.

import { checkOptionNames, RepriseError } from "../base/index.ts";

/** One part of a graph's state: its initial value, and the pure function that folds a change into it. */
export interface Channel<Value, Change = Value> {
  readonly initial: Value;
  readonly reduce: (value: Value, change: Change) => Value;
  /** Lets a checkpoint store the change instead of the whole value. */
  readonly "~kind"?: ChannelKind;
  /** At most one item of a step may change it. */
  readonly "~single"?: boolean;
}

/** Why a channel of this kind cannot hold a value or take it as a change; undefined if it can. */
export function findMisfit(channel: Channel<any, any> | undefined, value: unknown): string | undefined {
  const got = `got ${value === null ? "null" : Array.isArray(value) ? "a list" : Number.isNaN(value) ? "NaN" : `a value of type ${typeof value}`}`;
  switch (channel?.["~kind"]) {
    case "append":
      return Array.isArray(value) ? undefined : `holds a list, ${got}`;
    case "merge":
      return isPlain(value) ? undefined : `holds an object, ${got}`;
    case "max":
      return typeof value === "number" && !Number.isNaN(value) ? undefined : `holds a number, ${got}`;
    default:
      return undefined;
  }
}

export type ChannelKind = "last" | "append" | "merge" | "max" | "custom";
export type Channels = Readonly<Record<string, Channel<any, any>>>;

/** The state that a graph's nodes read. */
export type ChannelValues<C> = { readonly [K in keyof C]: C[K] extends Channel<infer V, any> ? V : never } & {};
/** The changes that a node returns: one for each channel it changes. */
export type ChannelChanges<C> = { readonly [K in keyof C]?: C[K] extends Channel<any, infer U> ? U : never } & {};

/** Options of `last`. */
export interface LastOptions {
  /** Several changes in one step: `"last"` (default) keeps the last in fold order; `"fail"` fails the run (CHANNEL_CONFLICT). */
  conflict?: "last" | "fail";
}

/**
 * A channel that keeps the newest value. If a step changes it several times, the last change in fold order wins, or the run
 * fails with `conflict: "fail"`.
 *
 * @example
 * ```ts
 * import { last } from "reprise";
 * const state = { answer: last<string | null>(null), owner: last("", { conflict: "fail" }) };
 * ```
 */
export function last<T>(initial: T, options: LastOptions = {}): Channel<T> {
  checkOptionNames(options, ["conflict"], "last");
  const { conflict = "last" } = options;
  if (conflict !== "last" && conflict !== "fail")
    throw new RepriseError("BAD_OPTIONS", `last: expected a conflict of "last" or "fail", got ${String(conflict)}.`);
  return {
    initial,
    reduce: (_value, change) => change,
    "~kind": "last",
    ...(conflict === "fail" && { "~single": true }),
  };
}

/**
 * A channel that appends every change, itself a list, to its list.
 *
 * @example
 * ```ts
 * import { append } from "reprise";
 * const state = { messages: append<string>() };
 * ```
 */
export function append<T>(initial: readonly T[] = []): Channel<readonly T[]> {
  return { initial, reduce: (value, change) => [...listOf(value), ...change], "~kind": "append" };
}

/** The stored value may be older than the code that made the channel a list. */
function listOf<T>(value: readonly T[]): readonly T[] {
  if (Array.isArray(value)) return value;
  throw new RepriseError(
    "BAD_OPTIONS",
    `append() expected a list, but the stored value is ${value === null ? "null" : typeof value}. Fork the run with a patch that sets a list, or give the new channel another name.`,
  );
}

/**
 * A channel that merges every change into its object, key by key.
 *
 * @example
 * ```ts
 * import { merge } from "reprise";
 * const state = { profile: merge<{ name?: string; age?: number }>({}) };
 * ```
 */
export function merge<T extends object>(initial: T): Channel<T, Partial<T>> {
  return { initial, reduce: (value, change) => ({ ...value, ...change }), "~kind": "merge" };
}

/**
 * A channel that keeps the largest number.
 *
 * @example
 * ```ts
 * import { max } from "reprise";
 * const state = { score: max(0) };
 * ```
 */
export function max(initial: number = Number.NEGATIVE_INFINITY): Channel<number> {
  return { initial, reduce: (value, change) => Math.max(value, change), "~kind": "max" };
}

/**
 * A channel with a custom reducer.
 *
 * @example
 * ```ts
 * import { channel } from "reprise";
 * const state = { total: channel(0, (sum, cents: number) => sum + cents) };
 * ```
 */
export function channel<Value, Change = Value>(
  initial: Value,
  reduce: (value: Value, change: Change) => Value,
): Channel<Value, Change> {
  return { initial, reduce, "~kind": "custom" };
}

export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
