// Random programs: nested promises as data, and an interpreter that runs them with `ctx`.
//
// Every value that the code receives is mixed into one shared number, in order. Inputs, conditions and the result depend on
// that number, so two executions that resume branches in a different order end differently.

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

/** Few names, so that programs reuse them. */
const tasks = CALLEES.map((callee) => task(`task-${callee}`, (_ctx, input: number) => input));
const child = workflow("child", { ports: { note: signal<number>() } }, async (_ctx, input: number) => input);

/** The definitions that programs call. */
export const CALLED: readonly (Definition | AnyTask)[] = [...tasks, child];

type Condition = "mixed" | "random" | "now";

export type Program =
  | { readonly do: "task" | "run"; readonly callee: number; readonly undo?: boolean }
  | { readonly do: "cancel"; readonly callee: number; readonly undo: boolean; readonly meanwhile: Program }
  | { readonly do: "shield"; readonly body: Program }
  | { readonly do: "child"; readonly message?: "signal" | "cancel" }
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

// ── generation ──

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
  "cancel",
  "shield",
  "handle",
  "patched",
] as const;

/** A program of about `size` leaves. */
export function programOf(random: RandomSource, size: number): Program {
  if (size <= 1) return leafOf(random);
  const shape = random.pick(SHAPES);
  switch (shape) {
    case "seq":
    case "all":
    case "race":
    case "any":
    case "allSettled":
      return { do: shape, of: branchesOf(random, size) };
    case "try": {
      const [body, handler, last] = [sized(random, size / 2), sized(random, size / 4), sized(random, size / 4)];
      const kind = random.below(3);
      return { do: "try", body, ...(kind !== 1 && { handler }), ...(kind !== 0 && { last }) };
    }
    case "loop":
      return { do: "loop", times: 2 + random.below(2), body: sized(random, size / 2) };
    case "if": {
      const on = random.pick(["mixed", "random", "now"] as const);
      return { do: "if", on, yes: sized(random, size / 2), no: sized(random, size / 2) };
    }
    case "deadline":
      return { do: "deadline", ms: 1 + random.below(50), body: sized(random, size - 1) };
    case "cancel": {
      const meanwhile = sized(random, size - 1);
      return { do: "cancel", callee: random.pick(CALLEES), undo: random.happens(0.3), meanwhile };
    }
    case "shield":
      return { do: "shield", body: sized(random, size - 1) };
    case "handle": {
      const [body, then] = [sized(random, size / 3), sized(random, (2 * size) / 3)];
      return { do: "handle", update: random.pick(UPDATES), body, then };
    }
    case "patched":
      return { do: "patched", patch: random.pick(PATCHES), yes: sized(random, size - 1), no: leafOf(random) };
    case "later":
      return { do: "later", body: sized(random, size / 2), meanwhile: sized(random, size / 2) };
  }
}

function sized(random: RandomSource, size: number): Program {
  return programOf(random, Math.max(1, Math.round(size)));
}

function branchesOf(random: RandomSource, size: number): Program[] {
  const count = Math.min(size, 2 + random.below(3));
  return Array.from({ length: count }, () => sized(random, size / count));
}

function leafOf(random: RandomSource): Program {
  const leaf = random.pick(LEAVES);
  switch (leaf) {
    case "task":
    case "run":
      return { do: leaf, callee: random.pick(CALLEES), ...(random.happens(0.2) && { undo: true }) };
    case "child":
      return { do: "child", ...(random.happens(0.3) && { message: random.pick(["signal", "cancel"] as const) }) };
    case "sleep":
      return { do: "sleep", ms: 1 + random.below(50) };
    case "wait":
      return { do: "wait", port: random.pick(PORTS), timed: random.happens(0.5) };
    case "receive": {
      const names = random.pick([...SIGNALS, SIGNALS, [SIGNALS[0]]]);
      return { do: "receive", names, timed: random.happens(0.5) };
    }
    case "small": {
      const small = random.pick(SMALL);
      if (small === "hop") return { do: "hop", times: 1 + random.below(4) };
      if (small === "set" || small === "get" || small === "clear") return { do: small, key: random.pick(STATE_KEYS) };
      return { do: small };
    }
  }
}

// ── execution ──

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

  async execute(program: Program): Promise<number> {
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
      case "cancel":
        return this.#mix(await this.#canceledTask(program));
      case "shield":
        return this.#mix(await ctx.shield(() => this.execute(program.body)));
      case "child":
        return this.#mix(await this.#child(program.message));
      case "handle":
        (ctx.onUpdate as (name: string, handler: (input: number) => Promise<number>) => void)(
          program.update,
          async (input) => this.#mix(this.#mix(input) + (await this.execute(program.body))),
        );
        return this.execute(program.then);
      case "patched":
        return this.execute(ctx.patched(program.patch) ? program.yes : program.no);
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
        return this.#inSequence(program.of);
      case "all":
        return this.#mix(String(await Promise.all(program.of.map((branch) => this.execute(branch)))));
      case "race":
        return this.#mix(await Promise.race(program.of.map((branch) => this.execute(branch))));
      case "any":
        return this.#mix(await Promise.any(program.of.map((branch) => this.execute(branch))));
      case "allSettled": {
        const settled = await Promise.allSettled(program.of.map((branch) => this.execute(branch)));
        return this.#mix(settled.map((each) => (each.status === "fulfilled" ? each.value : "failed")).join());
      }
      case "try":
        return this.#tryCatch(program);
      case "loop": {
        let sum = 0;
        for (let turn = 0; turn < program.times; turn += 1) sum = (sum + (await this.execute(program.body))) | 0;
        return sum;
      }
      case "if":
        return this.execute(this.#holds(program.on) ? program.yes : program.no);
      case "deadline": {
        const timer = ctx.sleep(program.ms);
        const winner = await Promise.race([this.execute(program.body), timer.then(() => -1)]);
        timer.cancel();
        return this.#mix(winner);
      }
      case "later": {
        const body = this.execute(program.body);
        body.catch(() => {});
        return ((await this.execute(program.meanwhile)) + (await body)) | 0;
      }
    }
  }

  async #canceledTask({ callee, undo, meanwhile }: Program & { do: "cancel" }): Promise<number> {
    const started = this.#ctx.task(tasks[callee]!, this.mixed, undo ? { undo: tasks[0]! } : {});
    const before = await this.execute(meanwhile);
    if ((this.mixed & 1) === 0) started.cancel();
    else started.cancel(`not needed at ${this.mixed}`);
    try {
      return before + (await started);
    } catch (error) {
      return this.#mix(error);
    }
  }

  async #child(message: "signal" | "cancel" | undefined): Promise<number> {
    const started = this.#ctx.child(child, this.mixed);
    if (message === "signal") {
      await started.signal("note", this.mixed);
      await started.signal("note", this.mixed + 1);
    }
    if (message === "cancel") await started.cancel();
    return started;
  }

  async #inSequence(programs: readonly Program[]): Promise<number> {
    let sum = 0;
    for (const each of programs) sum = (sum + (await this.execute(each))) | 0;
    return sum;
  }

  async #tryCatch({ body, handler, last }: Program & { do: "try" }): Promise<number> {
    try {
      return await this.execute(body);
    } catch (error) {
      this.#mix(error);
      if (handler === undefined) throw error;
      return await this.execute(handler);
    } finally {
      if (last !== undefined) await this.execute(last);
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
    const interpreter = new Interpreter(ctx as unknown as WorkflowContext);
    const value = await interpreter.execute(program);
    return { value, mixed: interpreter.mixed };
  });
}
