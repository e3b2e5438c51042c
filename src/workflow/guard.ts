// Guard: workflow code that asks the machine for the time, for chance or for the outside is caught in the act.
//
// It stands in front of the ambient functions of this process and looks, at each call, whether workflow code is calling
// (scope.ts); everybody else goes through. It is a help while writing code, no sandbox: `Date` kept in a variable before the
// guard came is not seen.
//
// U1. The functions are patched once per process, while an engine wants it; whose workflow is calling decides what happens.
// U2. Steps, tasks and everything outside workflows are untouched: what they are given is what the machine gives.
// U3. Our own code never trips it: it takes its machine from base/system.ts, which kept the originals.
//
// Cost outside workflows, Node 24 on a busy machine, CPU time per call without and with the guard, best of seven times a
// million: Date.now 46 and 81 ns, Math.random 12 and 25, performance.now 62 and 74, new Date() 109 and 125.

import { createRequire, syncBuiltinESMExports } from "node:module";
import { RepriseError } from "../base/index.ts";
import { placeOf } from "./places.ts";
import { callOutside, guardOfCaller } from "./scope.ts";

/** What happens when workflow code asks the machine: it throws, or a warning is logged once per place, or nothing. */
export type GuardMode = "error" | "warn" | "off";

/** Thrown into workflow code; a run whose code lets it through is stopped and can be resumed. */
export class NondeterminismError extends RepriseError {
  readonly called: string;
  readonly instead: string;
  readonly place: string;

  constructor(called: string, instead: string, place: string) {
    super(
      "NONDETERMINISM",
      `Workflow code called ${called} at ${place}; on replay it would answer differently. Use ${instead}`,
      { details: { called, instead, place } },
    );
    this.called = called;
    this.instead = instead;
    this.place = place;
    thrown.add(this);
  }
}

const thrown = new WeakSet<object>();

/** What the guard threw, told from anything else that may be thrown, also from what cannot be asked what it is. */
export function findNondeterminism(error: unknown): NondeterminismError | undefined {
  return typeof error === "object" && error !== null && thrown.has(error) ? (error as NondeterminismError) : undefined;
}

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;
type Owner = Record<string, unknown>;

interface Patched {
  readonly owner: Owner;
  readonly name: string;
  readonly original: unknown;
  readonly guarded: unknown;
}

const open = new Set<Guard>();
let patched: readonly Patched[] = [];

/** What one engine wants of the guard; its workflows are called with it. */
export class Guard {
  readonly #throws: boolean;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();

  constructor(mode: GuardMode, warn: (message: string) => void) {
    this.#throws = mode === "error";
    this.#warn = warn;
    if (mode === "off") return;
    if (open.size === 0) patched = patchAll();
    open.add(this);
  }

  /** U1. With the last one the functions are the machine's own again. */
  close(): void {
    if (!open.delete(this) || open.size > 0) return;
    for (const one of patched) restore(one);
    patched = [];
    syncBuiltinESMExports();
  }

  caught(called: string, instead: string, caller: unknown): void {
    if (!open.has(this)) return;
    const error = new NondeterminismError(called, instead, placeOf(caller));
    if (this.#throws) throw error;
    if (this.#warned.has(error.message)) return;
    this.#warned.add(error.message);
    callOutside(() => this.#warn(`${error.message}.`));
  }
}

/** For the code of nodes that is run again by a replay: time and chance are its own business, the outside is not. */
export class OutsideGuard extends Guard {
  readonly #note: (called: string, place: string) => void;

  constructor(note: (called: string, place: string) => void) {
    super("error", () => {});
    this.#note = note;
  }

  override caught(called: string, instead: string, caller: unknown): void {
    if (instead !== OUTSIDE) return;
    this.#note(called, placeOf(caller));
    super.caught(called, instead, caller);
  }
}

function restore({ owner, name, original, guarded }: Patched): void {
  // Somebody else stands in front of us by now: taken away, theirs would go with ours.
  if (owner[name] === guarded) owner[name] = original;
}

/** Called first by everything that was patched. */
function check(called: string, instead: string, caller: unknown): void {
  guardOfCaller()?.caught(called, instead, caller);
}

const NOW = "ctx.now()";
const SLEEP = "ctx.sleep()";
const RUN = "ctx.run()";
const OUTSIDE = `${RUN}, which keeps the answer`;

/** Owner, name, how a message calls it, what to use instead. */
function targets(): readonly (readonly [owner: object, name: string, called: string, instead: string])[] {
  const require = createRequire(import.meta.url);
  const nodeCrypto = require("node:crypto") as object;
  const timers = require("node:timers") as object;
  const waits = require("node:timers/promises") as object;
  const net = require("node:net") as { Socket: { prototype: object } };
  const datagrams = require("node:dgram") as { Socket: { prototype: object } };
  const processes = require("node:child_process") as object;
  return [
    [Date, "now", "Date.now()", NOW],
    [Object.getPrototypeOf(performance) as object, "now", "performance.now()", NOW],
    [process.hrtime, "bigint", "process.hrtime.bigint()", NOW],
    [process, "hrtime", "process.hrtime()", NOW],
    [Math, "random", "Math.random()", "ctx.random()"],
    [Crypto.prototype, "randomUUID", "crypto.randomUUID()", "ctx.uuid()"],
    [Crypto.prototype, "getRandomValues", "crypto.getRandomValues()", `ctx.random(), or for secrets ${RUN}`],
    [nodeCrypto, "randomUUID", "randomUUID()", "ctx.uuid()"],
    [nodeCrypto, "randomBytes", "randomBytes()", `ctx.random(), or for secrets ${RUN}`],
    [nodeCrypto, "randomInt", "randomInt()", "ctx.random()"],
    ...[globalThis, timers, waits].flatMap((owner) => [
      [owner, "setTimeout", "setTimeout()", SLEEP] as const,
      [owner, "setInterval", "setInterval()", SLEEP] as const,
      [owner, "setImmediate", "setImmediate()", SLEEP] as const,
    ]),
    [AbortSignal, "timeout", "AbortSignal.timeout()", SLEEP],
    [globalThis, "fetch", "fetch()", OUTSIDE],
    ...["node:http", "node:https"].flatMap((name) =>
      ["request", "get"].map((way) => [require(name) as object, way, `${name.slice(5)}.${way}()`, OUTSIDE] as const),
    ),
    [net.Socket.prototype, "connect", "net.connect()", OUTSIDE],
    [datagrams.Socket.prototype, "send", "dgram.send()", OUTSIDE],
    ...["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"].map(
      (way) => [processes, way, `child_process.${way}()`, OUTSIDE] as const,
    ),
  ];
}

/** Constructors whose objects show when memory was collected. */
const COLLECTED = ["WeakRef", "FinalizationRegistry"];

function patchAll(): readonly Patched[] {
  const all: Patched[] = [];
  const replace = (owner: Owner, name: string, guarded: unknown): void => {
    all.push({ owner, name, original: owner[name], guarded });
    owner[name] = guarded;
  };
  for (const [owner, name, called, instead] of targets()) {
    const original = (owner as Owner)[name];
    if (typeof original === "function")
      replace(owner as Owner, name, guardedFunction(original as AnyFunction, called, instead));
  }
  const globals = globalThis as unknown as Owner;
  replace(globals, "Date", guardedDate(Date));
  for (const name of COLLECTED)
    replace(globals, name, guardedConstructor(globals[name] as new (...args: unknown[]) => object, name));
  syncBuiltinESMExports();
  return all;
}

function guardedFunction(original: AnyFunction, called: string, instead: string): AnyFunction {
  const guarded: AnyFunction = function (this: unknown, ...args) {
    check(called, instead, guarded);
    return original.apply(this, args);
  };
  // `util.promisify(setTimeout)` and `process.hrtime.bigint` hang on the function.
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  return guarded;
}

/** Shares its prototype with the original, so that each is an instance of the other. */
function guardedDate(Original: DateConstructor): unknown {
  function GuardedDate(this: unknown, ...args: unknown[]): unknown {
    if (args.length === 0 || new.target === undefined)
      check(new.target === undefined ? "Date()" : "new Date()", NOW, GuardedDate);
    if (new.target === undefined) return Original();
    // Most calls by far; Reflect.construct takes three times as long.
    if (new.target === (GuardedDate as unknown)) return args.length === 0 ? new Original() : construct(Original, args);
    return Reflect.construct(Original, args, new.target);
  }
  return standIn(GuardedDate, Original);
}

function construct(Original: DateConstructor, args: readonly unknown[]): Date {
  return args.length === 1 ? new Original(args[0] as number) : new Original(...(args as [number, number]));
}

function guardedConstructor(Original: new (...args: unknown[]) => object, name: string): unknown {
  function Guarded(this: unknown, ...args: unknown[]): object {
    check(`new ${name}()`, "a plain reference: what was collected differs from replay to replay", Guarded);
    return Reflect.construct(Original, args, new.target === (Guarded as unknown) ? Original : (new.target ?? Original));
  }
  return standIn(Guarded, Original);
}

function standIn(guarded: object, original: object): object {
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  return Object.setPrototypeOf(guarded, original) as object;
}
