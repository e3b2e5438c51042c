// createEngine: options checked, parts found, engine started.

import { hostname } from "node:os";
import { inspect } from "node:util";
import {
  checkName,
  checkOptionNames,
  RepriseError,
  systemClock,
  systemRandom,
  systemTimers,
  toMs,
  checkCodec,
} from "../base/index.ts";
import { checkRedact, Labels, type AnyTask, type Definition, type Logger, type Queue } from "../kernel/index.ts";
import { Registry, type OutboxHandler } from "../worker/index.ts";
import { storeOf } from "../stores/index.ts";
import type { GuardMode } from "../workflow/index.ts";
import type { DefinitionsIn, Engine, EngineOptions, WorkerSettings } from "./api.ts";
import { EngineCore } from "./engine.ts";
import { stderrLogger } from "./logger.ts";
import { checkLimits } from "./limits.ts";

export const DEFAULT_CONCURRENCY = 256;
/** LS2 */
export const DEFAULT_LEASE_MS = 10_000;

/** What a run's row says about the process that started it; never hashed. */
export function runtimeText(): string {
  const { node, v8, icu, tz } = process.versions;
  return JSON.stringify({ node, v8, icu, tz });
}

function checkObject(value: unknown, expected: string): void {
  if (typeof value === "object" && value !== null) return;
  throw new RepriseError("BAD_OPTIONS", `${expected}, got ${String(value)}.`);
}

function workerSettings(worker: false | WorkerSettings = {}): WorkerSettings {
  if (worker === false) return {};
  checkObject(worker, "worker: expected false, or an object of settings");
  checkOptionNames(worker, ["concurrency", "labels", "lease", "queues"], "worker");
  return worker;
}

/** The names of the queues to work on, made known to the registry; undefined: all. */
export function queueNames(registry: Registry, queues: unknown): readonly string[] | undefined {
  if (queues === undefined) return undefined;
  if (!Array.isArray(queues) || queues.length === 0)
    throw new RepriseError("BAD_OPTIONS", "worker.queues: expected an array of what queue() made, at least one.");
  for (const queue of queues as readonly Queue[]) registry.addQueue(queue);
  return (queues as readonly Queue[]).map(({ name }) => name);
}

function checkConcurrency(concurrency: number): number {
  if (Number.isSafeInteger(concurrency) && concurrency >= 1) return concurrency;
  throw new RepriseError("BAD_OPTIONS", `Expected a concurrency of 1 or more, got ${String(concurrency)}.`);
}

function checkLease(leaseMs: number): number {
  if (leaseMs >= 100) return leaseMs;
  throw new RepriseError("BAD_OPTIONS", `Expected a lease of at least 100 ms, got ${leaseMs} ms.`);
}

export function checkDurability(durability: unknown): "full" | "relaxed" {
  if (durability === "full" || durability === "relaxed") return durability;
  throw new RepriseError("BAD_OPTIONS", `Expected a durability of "full" or "relaxed", got ${String(durability)}.`);
}

/** Also for the test kit: what the environment says where nothing was asked for. */
export function guardMode(guard: unknown): GuardMode {
  if (guard === undefined) return process.env["NODE_ENV"] === "production" ? "off" : "error";
  if (guard === "error" || guard === "warn" || guard === "off") return guard;
  throw new RepriseError("BAD_OPTIONS", `guard: expected "error", "warn" or "off", got ${inspect(guard)}.`);
}

function checkLogger(logger: Logger): Logger {
  for (const level of ["info", "warn", "error"] as const)
    if (typeof logger[level] !== "function")
      throw new RepriseError("BAD_OPTIONS", `The logger has no function ${level}.`);
  return logger;
}

/** The handlers of messages by destination. */
export function checkOutbox(outbox: unknown = {}): ReadonlyMap<string, OutboxHandler> {
  checkObject(outbox, "outbox: expected an object with a function for each destination");
  const handlers = new Map<string, OutboxHandler>();
  for (const [destination, handler] of Object.entries(outbox as Record<string, unknown>)) {
    checkName(destination, "outbox: destination");
    if (typeof handler !== "function")
      throw new RepriseError(
        "BAD_OPTIONS",
        `outbox.${destination}: expected a function that delivers, got ${typeof handler}.`,
      );
    handlers.set(destination, handler as OutboxHandler);
  }
  return handlers;
}

/** The definitions among what a caller gave; refuses anything that is not a list of them. */
export function registryOf(definitions: unknown): Registry {
  if (!Array.isArray(definitions))
    throw new RepriseError(
      "BAD_OPTIONS",
      `createEngine: expected an array of workflows, graphs and tasks as \`definitions\`, got ${typeof definitions}.`,
    );
  return new Registry(definitions as (Definition | AnyTask)[]);
}

/**
 * Opens a store and starts working on its runs.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello] });
 * const run = await engine.start(hello, "Ada", { id: "hello-1" });
 * console.log(await run.result());
 * ```
 */
export async function createEngine<const Defs extends Definition | AnyTask>(
  options: EngineOptions<Defs>,
): Promise<Engine<DefinitionsIn<Defs>>> {
  checkObject(options, "createEngine: expected an object of options");
  checkOptionNames(
    options,
    ["codec", "definitions", "durability", "guard", "limits", "logger", "outbox", "redact", "store", "worker"],
    "createEngine",
  );
  const registry = registryOf(options.definitions);
  const source = storeOf(options.store);
  const durability = checkDurability(options.durability ?? "full");
  const settings = workerSettings(options.worker);
  const codec = checkCodec(options.codec);
  const parts = {
    timers: systemTimers,
    random: systemRandom,
    registry,
    ...checkLimits(options.limits),
    redaction: checkRedact(options.redact),
    logger: checkLogger(options.logger ?? stderrLogger),
    name: `${hostname()}/${process.pid}`,
    host: hostname(),
    pid: process.pid,
    runtime: runtimeText(),
    outbox: checkOutbox(options.outbox),
    newSalt: codec && (() => systemRandom.token()),
    works: options.worker !== false,
    concurrency: checkConcurrency(settings.concurrency ?? DEFAULT_CONCURRENCY),
    leaseMs: checkLease(settings.lease === undefined ? DEFAULT_LEASE_MS : toMs(settings.lease, "worker.lease")),
    guardMode: guardMode(options.guard),
    queues: queueNames(registry, settings.queues),
    labels: Labels.of(settings.labels),
    heartbeats: true,
    polls: true,
    determinism: process.env["NODE_ENV"] === "production" ? "per-type" : "strict",
  } as const;
  const store = await source["~open"]({
    clock: systemClock,
    timers: parts.timers,
    random: parts.random,
    durability,
    codec,
  });
  const engine = new EngineCore({ ...parts, store });
  try {
    await engine.begin();
  } catch (error) {
    engine.crash();
    await store.close();
    throw error;
  }
  return engine as unknown as Engine<DefinitionsIn<Defs>>;
}
