// Random programs: nested promises as data, and the async function that follows them against `ctx`.
//
// Every value the code gets is mixed into one shared number, in the order it gets them, and that number goes into
// inputs, conditions and the result. So two executions that resume branches in a different order end differently.

import { FatalError } from "../../src/base/index.ts";
import { promise, signal, stream, task, update, type AnyTask, type Definition } from "../../src/kernel/index.ts";
import { workflow, type WorkflowContext } from "../../src/workflow/index.ts";
import type { RandomSource } from "./random-source.ts";

export const PORTS = ["approval", "payment", "reply"] as const;
export const SIGNALS = ["tick", "tock"] as const;
export const UPDATES = ["poke", "prod"] as const;
const PATCHES = ["first", "second"] as const;
const STATE_KEYS = ["a", "b"] as const;
const CALLEES = [0, 1, 2] as const;

/** Few names, so that they are used again and again. */
const tasks = CALLEES.map((callee) => task(`task-${callee}`, (_ctx, input: number) => input));
const child = workflow("child", { ports: { hear: signal<number>() } }, async (_ctx, input: number) => input);

/** What programs call. */
export const CALLED: readonly (Definition | AnyTask)[] = [...tasks, child];

type Condition = "mixed" | "random" | "now";

export type Program =
  | { readonly do: "task" | "run"; readonly callee: number; readonly undo?: boolean }
  | { readonly do: "shield"; readonly body: Program }
  | { readonly do: "child"; readonly says?: "signal" | "cancel" }
  | { readonly do: "handle"; readonly update: (typeof UPDATES)[number]; readonly body: Program; readonly then: Program }
  | { readonly do: "patched"; readonly patch: string; readonly yes: Program; readonly no: Program }
  | { readonly do: "send" | "emit" }
  | { readonly do: "sleep"; readonly ms: number }
  | { readonly do: "wait"; readonly port: (typeof PORTS)[number]; readonly timed: boolean }
  | { readonly do: "receive"; readonly names: string | readonly string[]; readonly timed: boolean }
  | { readonly do: "hop"; readonly times: number }
  | { readonly do: "random" | "now" | "throw" }
  | { readonly do: "set" | "get" | "clear"; readonly key: string }
  | { readonly do: "seq" | "all" | "race" | "any" | "allSettled"; readonly of: readonly Program[] }
  | { readonly do: "try"; readonly body: Program; readonly handler?: Program; readonly last?: Program }
  | { readonly do: "loop"; readonly times: number; readonly body: Program }
  | { readonly do: "if"; readonly on: Condition; readonly yes: Program; readonly no: Program }
  | { readonly do: "deadline"; readonly ms: number; readonly body: Program }
  | { readonly do: "later"; readonly body: Program; readonly meanwhile: Program };

// ── making one ──

const LEAVES = [
  "task",
  "task",
  "task",
  "run",
  "run",
  "run",
  "sleep",
  "wait",
  "receive",
  "child",
  "small",
  "small",
] as const;
const SMALL = ["hop", "hop", "random", "now", "set", "get", "clear", "throw", "send", "send", "emit"] as const;
const SHAPES = [
  "seq",
  "seq",
  "seq",
  "all",
  "all",
  "race",
  "any",
  "allSettled",
  "try",
  "try",
  "loop",
  "if",
  "deadline",
  "later",
  "shield",
  "handle",
  "patched",
] as const;

/** A program of about `size` leaves. */
export function programOf(chance: RandomSource, size: number): Program {
  if (size <= 1) return leafOf(chance);
  const shape = chance.pick(SHAPES);
  switch (shape) {
    case "seq":
    case "all":
    case "race":
    case "any":
    case "allSettled":
      return { do: shape, of: branchesOf(chance, size) };
    case "try": {
      const [body, handler, last] = [sized(chance, size / 2), sized(chance, size / 4), sized(chance, size / 4)];
      const kind = chance.below(3);
      return { do: "try", body, ...(kind !== 1 && { handler }), ...(kind !== 0 && { last }) };
    }
    case "loop":
      return { do: "loop", times: 2 + chance.below(2), body: sized(chance, size / 2) };
    case "if": {
      const on = chance.pick(["mixed", "random", "now"] as const);
      return { do: "if", on, yes: sized(chance, size / 2), no: sized(chance, size / 2) };
    }
    case "deadline":
      return { do: "deadline", ms: 1 + chance.below(50), body: sized(chance, size - 1) };
    case "shield":
      return { do: "shield", body: sized(chance, size - 1) };
    case "handle": {
      const [body, then] = [sized(chance, size / 3), sized(chance, (2 * size) / 3)];
      return { do: "handle", update: chance.pick(UPDATES), body, then };
    }
    case "patched":
      return { do: "patched", patch: chance.pick(PATCHES), yes: sized(chance, size - 1), no: leafOf(chance) };
    case "later":
      return { do: "later", body: sized(chance, size / 2), meanwhile: sized(chance, size / 2) };
  }
}

function sized(chance: RandomSource, size: number): Program {
  return programOf(chance, Math.max(1, Math.round(size)));
}

function branchesOf(chance: RandomSource, size: number): Program[] {
  const count = Math.min(size, 2 + chance.below(3));
  return Array.from({ length: count }, () => sized(chance, size / count));
}

function leafOf(chance: RandomSource): Program {
  const leaf = chance.pick(LEAVES);
  switch (leaf) {
    case "task":
    case "run":
      return { do: leaf, callee: chance.pick(CALLEES), ...(chance.happens(0.2) && { undo: true }) };
    case "child":
      return { do: "child", ...(chance.happens(0.3) && { says: chance.pick(["signal", "cancel"] as const) }) };
    case "sleep":
      return { do: "sleep", ms: 1 + chance.below(50) };
    case "wait":
      return { do: "wait", port: chance.pick(PORTS), timed: chance.happens(0.5) };
    case "receive": {
      const names = chance.pick([...SIGNALS, SIGNALS, [SIGNALS[0]]]);
      return { do: "receive", names, timed: chance.happens(0.5) };
    }
    case "small": {
      const small = chance.pick(SMALL);
      if (small === "hop") return { do: "hop", times: 1 + chance.below(4) };
      if (small === "set" || small === "get" || small === "clear") return { do: small, key: chance.pick(STATE_KEYS) };
      return { do: small };
    }
  }
}

// ── following it ──

class Interpreter {
  readonly #ctx: WorkflowContext;
  mixed = 0;

  constructor(ctx: WorkflowContext) {
    this.#ctx = ctx;
  }

  #mix(value: unknown): number {
    const text =
      typeof value === "number" ? value : value instanceof Error ? hashOf(value.message) : hashOf(String(value));
    this.mixed = (Math.imul(this.mixed, 31) + text) | 0;
    return text;
  }

  #holds(on: Condition): boolean {
    if (on === "mixed") return (this.mixed & 1) === 0;
    if (on === "random") return this.#ctx.random() < 0.5;
    return this.#ctx.now().getTime() % 2 === 0;
  }

  async follow(program: Program): Promise<number> {
    const ctx = this.#ctx;
    switch (program.do) {
      case "task":
        return this.#mix(
          await ctx.task(tasks[program.callee]!, this.mixed, program.undo === true ? { undo: tasks[0]! } : {}),
        );
      case "run":
        return this.#mix(
          await ctx.run(
            `run-${program.callee}`,
            this.mixed,
            (_op, input: number) => input,
            program.undo === true ? { undo: async (result) => result } : {},
          ),
        );
      case "shield":
        return this.#mix(await ctx.shield(() => this.follow(program.body)));
      case "child":
        return this.#mix(await this.#child(program.says));
      case "handle":
        (ctx.onUpdate as (name: string, handler: (input: number) => Promise<number>) => void)(
          program.update,
          async (input) => this.#mix(this.#mix(input) + (await this.follow(program.body))),
        );
        return this.follow(program.then);
      case "patched":
        return this.follow(ctx.patched(program.patch) ? program.yes : program.no);
      case "send":
        ctx.send("somewhere", this.mixed);
        return 0;
      case "emit":
        (ctx.emit as (name: string, chunk: number) => void)("shown", this.mixed);
        return 0;
      case "sleep":
        return this.#mix(await ctx.sleep(program.ms));
      case "wait": {
        const wait = ctx.promise as (name: string, options?: object) => Promise<unknown>;
        return this.#mix(await wait(program.port, program.timed ? { timeout: 20 } : undefined));
      }
      case "receive": {
        const receive = ctx.receive as (names: unknown, options?: object) => Promise<unknown>;
        const got = await receive(program.names, program.timed ? { timeout: 20 } : undefined);
        return this.#mix(typeof got === "object" ? JSON.stringify(got) : got);
      }
      case "hop":
        for (let hop = 0; hop < program.times; hop += 1) await Promise.resolve();
        return this.#mix(program.times);
      case "random":
        return this.#mix(Math.floor(ctx.random() * 1000));
      case "now":
        return this.#mix(ctx.now().getTime() % 1000);
      case "throw":
        throw new FatalError(`thrown at ${this.mixed}`);
      case "set":
        ctx.state.set(program.key, this.mixed);
        return 0;
      case "get":
        return this.#mix(ctx.state.get(program.key) ?? -1);
      case "clear":
        ctx.state.clear(program.key);
        return 0;
      case "seq":
        return this.#inTurn(program.of);
      case "all":
        return this.#mix(String(await Promise.all(program.of.map((branch) => this.follow(branch)))));
      case "race":
        return this.#mix(await Promise.race(program.of.map((branch) => this.follow(branch))));
      case "any":
        return this.#mix(await Promise.any(program.of.map((branch) => this.follow(branch))));
      case "allSettled": {
        const settled = await Promise.allSettled(program.of.map((branch) => this.follow(branch)));
        return this.#mix(settled.map((each) => (each.status === "fulfilled" ? each.value : "failed")).join());
      }
      case "try":
        return this.#trying(program);
      case "loop": {
        let sum = 0;
        for (let turn = 0; turn < program.times; turn += 1) sum = (sum + (await this.follow(program.body))) | 0;
        return sum;
      }
      case "if":
        return this.follow(this.#holds(program.on) ? program.yes : program.no);
      case "deadline": {
        const timer = ctx.sleep(program.ms);
        const winner = await Promise.race([this.follow(program.body), timer.then(() => -1)]);
        timer.cancel();
        return this.#mix(winner);
      }
      case "later": {
        const body = this.follow(program.body);
        body.catch(() => {});
        return ((await this.follow(program.meanwhile)) + (await body)) | 0;
      }
    }
  }

  async #child(says: "signal" | "cancel" | undefined): Promise<number> {
    const asked = this.#ctx.child(child, this.mixed);
    if (says === "signal") {
      await asked.signal("hear", this.mixed);
      await asked.signal("hear", this.mixed + 1);
    }
    if (says === "cancel") await asked.cancel();
    return asked;
  }

  async #inTurn(programs: readonly Program[]): Promise<number> {
    let sum = 0;
    for (const each of programs) sum = (sum + (await this.follow(each))) | 0;
    return sum;
  }

  async #trying({ body, handler, last }: Program & { do: "try" }): Promise<number> {
    try {
      return await this.follow(body);
    } catch (error) {
      this.#mix(error);
      if (handler === undefined) throw error;
      return await this.follow(handler);
    } finally {
      if (last !== undefined) await this.follow(last);
    }
  }
}

function hashOf(text: string): number {
  let hash = 7;
  for (let index = 0; index < text.length; index += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  return hash;
}

export function definitionOf(program: Program): Definition {
  const ports = { approval: promise<number>(), payment: promise<number>(), reply: promise<number>() };
  const signals = { tick: signal<number>(), tock: signal<number>() };
  const updates = { poke: update<number, number>(), prod: update<number, number>(), shown: stream<number>() };
  return workflow("program", { ports: { ...ports, ...signals, ...updates } }, async (ctx) => {
    const follower = new Interpreter(ctx as unknown as WorkflowContext);
    const value = await follower.follow(program);
    return { value, mixed: follower.mixed };
  });
}
