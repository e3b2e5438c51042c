// Random flows, and an oracle that says what they come to: values in the order written, nothing concurrent, no store.

import { flow, queue, typed } from "reprise";
import type { RandomSource } from "../replay/random-source.ts";

export interface NodeSpec {
  readonly kind: "action" | "inline" | "spread" | "nested" | "parallel" | "call";
  readonly name: string;
  readonly needs: readonly string[];
  /** Items of a spread. */
  readonly width: number;
  readonly settle: boolean;
  readonly concurrency: number | undefined;
  /** How an action ends: after so many failed attempts, or caught, or never. */
  readonly fails: "no" | "once" | "caught" | "for good";
}
export interface WhenSpec {
  readonly kind: "when";
  readonly name: string;
  readonly needs: readonly string[];
  readonly then: readonly Spec[];
  readonly otherwise: readonly Spec[] | undefined;
}
export type Spec = NodeSpec | WhenSpec;
export interface FlowSpec {
  readonly specs: readonly Spec[];
  readonly needs: readonly string[];
}

/** A third of the actions and spreads wait here. */
const PER_KEY = queue("per-key", { perKey: { concurrency: 2 } });

const KINDS = ["action", "action", "action", "inline", "inline", "spread", "nested", "parallel", "call"] as const;

export function randomFlow(chance: RandomSource, mayFail: boolean): FlowSpec {
  let names = 0;
  const scope = (above: readonly string[], count: number, depth: number): { specs: Spec[]; names: string[] } => {
    const specs: Spec[] = [];
    const known = [...above];
    for (let made = 0; made < count; made += 1) {
      const needs = some(chance, known, 1, 4);
      const name = `n${(names += 1)}`;
      if (depth < 3 && chance.happens(0.2)) {
        const then = scope(known, between(chance, 1, 3), depth + 1);
        const other = chance.happens(0.6) ? scope([...known], between(chance, 1, 3), depth + 1) : undefined;
        specs.push({ kind: "when", name: `w${name}`, needs, then: then.specs, otherwise: other?.specs });
        known.push(...then.names, ...(other?.names ?? []));
        continue;
      }
      const kind = chance.pick(KINDS);
      specs.push({
        kind,
        name,
        needs,
        width: chance.happens(0.2) ? 0 : between(chance, 1, chance.happens(0.1) ? 50 : 6),
        settle: chance.happens(0.5),
        concurrency: chance.happens(0.3) ? between(chance, 1, 4) : undefined,
        fails: chance.happens(0.15)
          ? chance.pick(["once", "caught", ...(mayFail ? (["for good"] as const) : [])] as const)
          : "no",
      });
      known.push(name);
    }
    return { specs, names: known.slice(above.length) };
  };
  const { specs, names: all } = scope(["input"], between(chance, 1, 12), 0);
  return { specs, needs: some(chance, ["input", ...all], 1, 5) };
}

/** Both ends included. */
export function between(chance: RandomSource, low: number, high: number): number {
  return low + chance.below(high - low + 1);
}

/** Different ones, those at the end more often. */
function some<T>(chance: RandomSource, list: readonly T[], low: number, high: number): T[] {
  const count = Math.min(list.length, between(chance, low, high));
  const picked = new Set<T>();
  while (picked.size < count) picked.add(chance.pick(chance.happens(0.5) ? list.slice(-6) : list));
  return [...picked];
}

/** What a node makes of what it is given: a number that depends on all of it. */
export function mix(name: string, given: unknown): number {
  let sum = 7;
  for (const char of `${name} ${textOf(given)}`) sum = (sum * 31 + char.charCodeAt(0)) % 1_000_003;
  return sum;
}

function textOf(value: unknown): string {
  if (value instanceof Error) return value.message;
  if (typeof value !== "object" || value === null) return String(value);
  const parts = Object.keys(value)
    .toSorted()
    .map((key) => `${key}: ${textOf((value as Record<string, unknown>)[key])}`);
  return `{${parts.join(", ")}}`;
}

export interface Machine {
  /** Called for everything that runs on a worker; may wait. */
  work(name: string, attempt: number): Promise<void> | void;
}

const SKIP = Symbol("skip");
/** Needs something that failed for good. */
const LOST = Symbol("lost");
const FAILS = Symbol("fails");
type Values = Map<string, unknown>;

export interface Expected {
  /** Undefined when the output cannot be reached. */
  readonly output: number | undefined;
  /** Some node fails for good: unless the output is reached before, so does the run. */
  readonly mayFail: boolean;
}

export function oracle(spec: FlowSpec, input: number): Expected {
  const values: Values = new Map([["input", input]]);
  let mayFail = false;
  const go = (specs: readonly Spec[], gate: boolean | typeof LOST): void => {
    for (const node of specs) {
      const given = givenTo(values, node.needs);
      const runs = gate === LOST || given === LOST ? LOST : gate && given !== SKIP;
      if (node.kind === "when") {
        const holds = runs === true && mix(node.name, given) % 2 === 0;
        go(node.then, runs === true ? holds : runs);
        if (node.otherwise !== undefined) go(node.otherwise, runs === true ? !holds : runs);
        continue;
      }
      // A guard that does not hold skips, whatever else is lost.
      const value = gate === false ? SKIP : runs === LOST ? LOST : runs ? valueOf(node, given) : SKIP;
      if (value === FAILS) mayFail = true;
      values.set(node.name, value === FAILS ? LOST : value);
    }
  };
  go(spec.specs, true);
  const end = givenTo(values, spec.needs);
  if (end === LOST) return { output: undefined, mayFail };
  const given = end === SKIP ? Object.fromEntries(spec.needs.map((need) => [need, undefined])) : end;
  return { output: mix("output", given), mayFail };
}

function givenTo(values: Values, needs: readonly string[]): Record<string, unknown> | typeof SKIP | typeof LOST {
  const all = needs.map((need): [string, unknown] => [need, values.get(need)]);
  if (all.some(([, value]) => value === LOST)) return LOST;
  if (all.every(([, value]) => value === SKIP)) return SKIP;
  return Object.fromEntries(all.map(([need, value]) => [need, value === SKIP ? undefined : value]));
}

function valueOf(node: NodeSpec, given: unknown): unknown {
  const { name, kind, fails, settle, width } = node;
  if (kind === "parallel") return { a: mix(`${name}a`, given), b: mix(`${name}b`, given) };
  if (kind === "inline" || kind === "call") return mix(name, given);
  if (kind === "nested")
    return Array.from({ length: width }, (_, index) => {
      const inner = Array.from({ length: innerWidth(index) }, (_each, item) => mix(`${name} ${index} ${item}`, given));
      return settle ? { status: "fulfilled", value: inner } : inner;
    });
  if (kind === "action") {
    if (fails === "for good") return FAILS;
    return fails === "caught" ? mix(`${name} caught`, given) : mix(name, given);
  }
  const isBad = (index: number): boolean => (fails === "caught" || fails === "for good") && index % 3 === 0;
  if (!settle && width > 0 && isBad(0)) return FAILS;
  return Array.from({ length: width }, (_, index) => {
    const item = mix(`${name} ${index}`, given);
    if (!isBad(index)) return settle ? { status: "fulfilled", value: item } : item;
    return { status: "rejected", reason: `${name}[${index}]` };
  });
}

/** How many items the spread inside item `index` of a spread has. */
function innerWidth(index: number): number {
  return (index * 7) % 5;
}

/** The same, written with `flow()`. */
export function build(name: string, spec: FlowSpec, machine: Machine): any {
  const retry = { maxAttempts: 2, baseDelay: 5, maxDelay: 5 };
  const sub = flow(`${name}-sub`, { input: typed<{ name: string; given: unknown }>() })
    .action("mixed", ["input"], async (_ctx, { input }) => {
      await machine.work(input.name, 0);
      return mix(input.name, input.given);
    })
    .output(["mixed"], ({ mixed }) => mixed);
  const nested = flow(`${name}-nested`, { input: typed<{ name: string; index: number; given: unknown }>() })
    .spread(
      "inner",
      ["input"],
      ({ input }) => Array.from({ length: innerWidth(input.index) }, (_, item) => item),
      async (_ctx, item) => {
        await machine.work(`inner ${item}`, 0);
        return item;
      },
    )
    .output(["input", "inner"], ({ input, inner }) =>
      inner.map((item) => mix(`${input.name} ${input.index} ${item}`, input.given)),
    );
  const add = (builder: any, node: Spec): any => {
    const { needs } = node;
    if (node.kind === "when") {
      const test = (given: unknown): boolean => mix(node.name, given) % 2 === 0;
      const made = builder.when(node.name, needs, test, (branch: any) => node.then.reduce(add, branch));
      const { otherwise } = node;
      return otherwise === undefined ? made : made.otherwise(node.name, (branch: any) => otherwise.reduce(add, branch));
    }
    return addNode(builder, node, machine, retry, { sub, nested });
  };
  const made: any = flow(name, { input: typed<number>() });
  const whole = spec.specs.reduce(add, made);
  return { flow: whole.output(spec.needs, (given: unknown) => mix("output", given)), others: [sub, nested] };
}

function addNode(
  builder: any,
  node: NodeSpec,
  machine: Machine,
  retry: object,
  { sub, nested }: { sub: unknown; nested: unknown },
): any {
  const { name, needs, kind, fails, settle, width, concurrency } = node;
  const attempt = async (what: string, ctx: { attempt: number }, isBad: boolean): Promise<void> => {
    await machine.work(what, ctx.attempt);
    if (fails === "once" && ctx.attempt === 1) throw new Error("once");
    if (isBad) throw new Error(what);
  };
  const keyed = (of: (given: any) => number): object =>
    mix("keyed", name) % 3 === 0 ? { queue: PER_KEY, key: (given: any) => `k${of(given) % 3}` } : {};
  switch (kind) {
    case "inline":
      return builder.inline(name, needs, (given: unknown) => mix(name, given));
    case "call":
      return builder.call(name, needs, sub, (given: unknown) => ({ name, given }));
    case "nested": {
      const items = (given: unknown): unknown[] =>
        Array.from({ length: width }, (_, index) => ({ name, index, given }));
      return builder.spread(name, needs, { settle, ...(concurrency !== undefined && { concurrency }) }, items, nested);
    }
    case "parallel":
      return builder.parallel(name, needs, {
        a: async (ctx: any, given: unknown) => (await machine.work(`${name}.a`, ctx.attempt), mix(`${name}a`, given)),
        b: (_ctx: any, given: unknown) => mix(`${name}b`, given),
      });
    case "action": {
      const options = {
        ...keyed((given) => mix(name, given)),
        ...(fails === "once" && { retry }),
        ...(fails === "caught" && { catch: (_error: Error, given: unknown) => mix(`${name} caught`, given) }),
      };
      return builder.action(name, needs, options, async (ctx: any, given: unknown) => {
        await attempt(name, ctx, fails === "caught" || fails === "for good");
        return mix(name, given);
      });
    }
    case "spread": {
      const items = (given: unknown): unknown[] =>
        Array.from({ length: width }, (_, index) => ({ index, mixed: mix(`${name} ${index}`, given) }));
      const options = {
        ...keyed(({ mixed }) => mixed),
        settle,
        ...(concurrency !== undefined && { concurrency }),
        ...(fails === "once" && { retry }),
      };
      const run = async (ctx: any, item: { mixed: number }, index: number): Promise<number> => {
        await attempt(`${name}[${index}]`, ctx, (fails === "caught" || fails === "for good") && index % 3 === 0);
        return item.mixed;
      };
      return builder.spread(name, needs, options, items, run);
    }
  }
}
