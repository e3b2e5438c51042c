// Guard: detects workflow code that uses the clock, random numbers or I/O of the machine.
//
// It patches global functions of this process and checks at each call whether workflow code is the caller (scope.ts). It
// helps while writing code and is not a sandbox: it misses a `Date` that was kept in a variable before the guard existed.
//
// guard.U1. The functions are patched once per process, while at least one engine has a guard. The engine of the calling
//   workflow decides what happens.
// guard.U2. Steps, tasks and code outside workflows get the original results.
// guard.U3. The engine's code never triggers it: base/system.ts keeps the originals.
// guard.U4. When every guard of the process is closed, each function is what it was before the first, also if several
//   copies of the package patched it and closed in another order: a layer below others is removed with the one above it.
// guard.U5. Inside `ctx.deterministic` the functions return values of the run (library-values.ts) in every mode. Those for which the
//   run has none are refused there. An engine without a guard patches the functions at its first such call.
//
// CPU time per call outside workflows, without and with the guard (Node 24, busy machine, best of seven times a million):
// Date.now 46 and 81 ns, Math.random 12 and 25, performance.now 62 and 74, new Date() 109 and 125.

import { createRequire, syncBuiltinESMExports } from "node:module";
import { RepriseError } from "../base/index.ts";
import { sourceLocationOf } from "./source-location.ts";
import { LIBRARY, type LibraryValues } from "./library-values.ts";
import { callOutside, workflowOfCaller, type WorkflowScope } from "./scope.ts";

/** What happens when workflow code is not deterministic: the call throws, or logs a warning once per location, or nothing. */
export type GuardMode = "error" | "warn" | "off";

/** Thrown into workflow code. If the code does not catch it, the run is stopped and can be resumed. */
export class NondeterminismError extends RepriseError {
  readonly called: string;
  readonly instead: string;
  readonly location: string;

  constructor(called: string, instead: string, location: string, isLibrary = false) {
    super(
      "NONDETERMINISM",
      isLibrary
        ? `\`${called}\` is refused inside \`ctx.deterministic()\` (${location}): library code there uses no network and no timers, because a replay calls it again. Call what needs them in \`ctx.run()\`.`
        : `\`${called}\` is not deterministic in workflow code (${location}): it returns a different value on replay. Use ${asCode(instead)}.`,
      { details: { called, instead, location } },
    );
    this.called = called;
    this.instead = instead;
    this.location = location;
    thrown.add(this);
  }
}

const thrown = new WeakSet<object>();

/** The error of the guard that this value is, or that a library wrapped in it. */
export function findNondeterminism(error: unknown, depth = 3): NondeterminismError | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if (thrown.has(error)) return error as NondeterminismError;
  if (depth === 0 || !(error instanceof Error)) return undefined;
  try {
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    for (const inner of [cause, ...(Array.isArray(errors) ? errors : [])]) {
      const found = findNondeterminism(inner, depth - 1);
      if (found !== undefined) return found;
    }
  } catch {
    // Anything can be thrown, also an object whose properties throw.
  }
  return undefined;
}

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;
type Owner = Record<string, unknown>;

interface Patched {
  readonly owner: Owner;
  readonly name: string;
  readonly layer: Layer;
}

/** One patch of one function, by one copy of the package. */
interface Layer {
  readonly original: unknown;
  /** False after its guard closed. The next guard that finds it on top removes it. */
  isOpen: boolean;
}

/** The layers of all copies of the package in this process. By identity: a wrapper of other code can copy properties. */
const LAYERS = Symbol.for("reprise.guard.layers");
const shared = globalThis as unknown as { [LAYERS]?: WeakMap<object, Layer> };
if (shared[LAYERS] === undefined) Object.defineProperty(shared, LAYERS, { value: new WeakMap<object, Layer>() });
const layers = shared[LAYERS] as WeakMap<object, Layer>;

const open = new Set<Guard>();
let patched: readonly Patched[] = [];

/** The guard of one engine. */
export class Guard {
  /** Of the workflow code that it checks. */
  readonly scope: WorkflowScope = { shielded: false, guard: this, query: undefined };
  readonly #mode: GuardMode;
  #isClosed = false;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();

  constructor(mode: GuardMode, warn: (message: string) => void) {
    this.#mode = mode;
    this.#warn = warn;
    if (mode !== "off") this.patch();
  }

  /** guard.U1, guard.U5. The functions stay patched until this guard is closed. */
  patch(): void {
    if (this.#isClosed || open.has(this)) return;
    if (open.size === 0) patched = patchAll();
    open.add(this);
  }

  /** guard.U1. Closing the last guard restores the functions. */
  close(): void {
    this.#isClosed = true;
    if (!open.delete(this) || open.size > 0) return;
    for (const { layer } of patched) layer.isOpen = false;
    for (const { owner, name } of patched) removeClosed(owner, name);
    patched = [];
    syncBuiltinESMExports();
  }

  caught(called: string, instead: string, caller: unknown): void {
    if (this.#mode === "off" || !open.has(this)) return;
    const error = new NondeterminismError(called, instead, sourceLocationOf(caller));
    if (this.#mode === "error") throw error;
    if (this.#warned.has(error.message)) return;
    this.#warned.add(error.message);
    callOutside(() => this.#warn(error.message));
  }
}

/** For a replay that runs nodes again: they may use the clock and random numbers, but no I/O. */
export class OutsideGuard extends Guard {
  readonly #note: (called: string, place: string) => void;

  constructor(note: (called: string, place: string) => void) {
    super("error", () => {});
    this.#note = note;
  }

  override caught(called: string, instead: string, caller: unknown): void {
    if (instead !== IO) return;
    this.#note(called, sourceLocationOf(caller));
    super.caught(called, instead, caller);
  }
}

/** guard.U4. Stops at a layer of an open guard, and at a function of other code: removing that would undo their patch. */
function removeClosed(owner: Owner, name: string): void {
  for (let layer = layerOf(owner[name]); layer?.isOpen === false; layer = layerOf(owner[name]))
    owner[name] = layer.original;
}

function layerOf(value: unknown): Layer | undefined {
  return typeof value === "function" ? layers.get(value) : undefined;
}

/** Called first by every patched function. Returns what library code draws from instead (guard.U5). */
function check(called: string, instead: string, caller: unknown, isOfLibrary: boolean): LibraryValues | undefined {
  const workflow = workflowOfCaller();
  if (workflow === undefined) return undefined;
  const { guard, library } = workflow;
  if (library === undefined) guard?.caught(called, instead, caller);
  else if (!isOfLibrary) {
    // A replay of nodes notes what its code tried.
    if (guard instanceof OutsideGuard) guard.caught(called, instead, caller);
    throw new NondeterminismError(called, instead, sourceLocationOf(caller), true);
  }
  return library;
}

function asCode(instead: string): string {
  return instead.replace(/ctx\.\w+\(\)/g, "`$&`");
}

const NOW = "ctx.now()";
const SLEEP = "ctx.sleep()";
const RUN = "ctx.run()";
const IO = `${RUN}, which records the result`;

/** Owner, name, its name in messages, what to use instead. */
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
    [ownerOf(performance, "now"), "now", "performance.now()", NOW],
    [process.hrtime, "bigint", "process.hrtime.bigint()", NOW],
    [process, "hrtime", "process.hrtime()", NOW],
    [Math, "random", "Math.random()", "ctx.random()"],
    [Crypto.prototype, "randomUUID", "crypto.randomUUID()", "ctx.uuid()"],
    [Crypto.prototype, "getRandomValues", "crypto.getRandomValues()", `ctx.random(), or for secrets ${RUN}`],
    [nodeCrypto, "randomUUID", "randomUUID()", "ctx.uuid()"],
    [nodeCrypto, "randomBytes", "randomBytes()", `ctx.random(), or for secrets ${RUN}`],
    [nodeCrypto, "randomFillSync", "randomFillSync()", `ctx.random(), or for secrets ${RUN}`],
    [nodeCrypto, "randomInt", "randomInt()", "ctx.random()"],
    ...[globalThis, timers, waits].flatMap((owner) => [
      [owner, "setTimeout", "setTimeout()", SLEEP] as const,
      [owner, "setInterval", "setInterval()", SLEEP] as const,
      [owner, "setImmediate", "setImmediate()", SLEEP] as const,
    ]),
    [AbortSignal, "timeout", "AbortSignal.timeout()", SLEEP],
    [globalThis, "fetch", "fetch()", IO],
    ...["node:http", "node:https"].flatMap((name) =>
      ["request", "get"].map((way) => [require(name) as object, way, `${name.slice(5)}.${way}()`, IO] as const),
    ),
    [net.Socket.prototype, "connect", "net.connect()", IO],
    [datagrams.Socket.prototype, "send", "dgram.send()", IO],
    ...["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"].map(
      (way) => [processes, way, `child_process.${way}()`, IO] as const,
    ),
  ];
}

/** The object in the prototype chain that has the property. Fake timers of tests replace `performance` by an object of their own. */
function ownerOf(object: object, name: string): object {
  let owner: object | null = object;
  while (owner !== null && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object | null;
  return owner ?? object;
}

/** Constructors whose objects reveal garbage collection. */
const COLLECTED = ["WeakRef", "FinalizationRegistry"];

function patchAll(): readonly Patched[] {
  const all: Patched[] = [];
  const replace = <T>(owner: Owner, name: string, guardedOf: (original: T) => object): void => {
    // Fake timers that were removed after their engine put a closed layer back.
    removeClosed(owner, name);
    const original = owner[name];
    if (typeof original !== "function") return;
    const guarded = guardedOf(original as T);
    const layer = { original, isOpen: true };
    layers.set(guarded, layer);
    all.push({ owner, name, layer });
    owner[name] = guarded;
  };
  for (const [owner, name, called, instead] of targets())
    replace(owner as Owner, name, (original: AnyFunction) => guardedFunction(original, called, instead));
  const globals = globalThis as unknown as Owner;
  replace(globals, "Date", guardedDate);
  for (const name of COLLECTED)
    replace(globals, name, (original: new (...args: unknown[]) => object) => guardedConstructor(original, name));
  syncBuiltinESMExports();
  return all;
}

function guardedFunction(original: AnyFunction, called: string, instead: string): AnyFunction {
  const valueOf = LIBRARY[called];
  const guarded: AnyFunction = function (this: unknown, ...args) {
    const library = check(called, instead, guarded, valueOf !== undefined);
    if (library === undefined || valueOf === undefined) return original.apply(this, args);
    return valueOf(library, args, () => original.apply(this, args));
  };
  // `util.promisify(setTimeout)` and `process.hrtime.bigint` are properties of the function.
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  return guarded;
}

/** Shares its prototype with the original, so instances of one are instances of the other. */
function guardedDate(Original: DateConstructor): object {
  function GuardedDate(this: unknown, ...args: unknown[]): unknown {
    const library =
      args.length === 0 || new.target === undefined
        ? check(new.target === undefined ? "Date()" : "new Date()", NOW, GuardedDate, true)
        : undefined;
    if (new.target === undefined) return library === undefined ? Original() : new Original(library.now()).toString();
    if (library !== undefined) args.push(library.now());
    // The most frequent case. Reflect.construct takes three times as long.
    if (new.target === (GuardedDate as unknown)) return args.length === 0 ? new Original() : construct(Original, args);
    return Reflect.construct(Original, args, new.target);
  }
  return standIn(GuardedDate, Original);
}

function construct(Original: DateConstructor, args: readonly unknown[]): Date {
  return args.length === 1 ? new Original(args[0] as number) : new Original(...(args as [number, number]));
}

function guardedConstructor(Original: new (...args: unknown[]) => object, name: string): object {
  function Guarded(this: unknown, ...args: unknown[]): object {
    check(`new ${name}()`, "a plain reference", Guarded, true);
    return Reflect.construct(Original, args, new.target === (Guarded as unknown) ? Original : (new.target ?? Original));
  }
  return standIn(Guarded, Original);
}

function standIn(guarded: object, original: object): object {
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  return Object.setPrototypeOf(guarded, original) as object;
}
