// Options of createEngine and createClient, checked before a store is opened.

import { inspect } from "node:util";
import {
  checkCodec,
  checkName,
  checkOptionNames,
  ENGINE_NAME,
  RepriseError,
  requireRealTime,
  systemRandom,
  systemTimers,
  toBytes,
  type Size,
} from "../base/index.ts";
import {
  checkRedact,
  type AnyTask,
  type Definition,
  type Queue,
  type Runtime,
  type Telemetry,
} from "../kernel/index.ts";
import { Registry } from "../process/index.ts";
import { placeAddress, storeOf } from "../stores/index.ts";
import type { ForeignMemos, OutboxHandler } from "../worker/index.ts";
import type { Determinism, GuardMode } from "../workflow/index.ts";
import type { ClientOptions } from "./api.ts";
import { checkSignal } from "./abort.ts";
import { checkLimits } from "./limits.ts";
import { checkLogger } from "./logger.ts";

export const DEFAULT_CONCURRENCY = 256;
/** worker-lease.L2 */
export const DEFAULT_LEASE_MS = 10_000;
const MIN_MEMORY = 1024 * 1024;

const CLIENT_OPTIONS = [
  "code",
  "codec",
  "contents",
  "definitions",
  "durability",
  "guard",
  "limits",
  "logger",
  "redact",
  "signal",
  "store",
  "telemetry",
  "webhooks",
];

/** Checks the options that clients and engines share. */
export function checkClientOptions(options: ClientOptions<unknown>, what: string, further: readonly string[] = []) {
  requireRealTime(what);
  checkObject(options, `${what}: expected an object of options`);
  checkOptionNames(options, [...CLIENT_OPTIONS, ...further], what);
  const registry = registryOf(options.definitions, what);
  const source = storeOf(options.store);
  const durability = checkDurability(options.durability ?? "full");
  const codec = checkCodec(options.codec);
  const contents = options.contents === undefined ? undefined : placeAddress(options.contents);
  const parts = {
    timers: systemTimers,
    random: systemRandom,
    registry,
    ...checkLimits(options.limits),
    redaction: checkRedact(options.redact),
    logger: checkLogger(options.logger),
    runtime: runtimeText(checkCode(options.code, `${what}: code`)),
    newSalt: codec && (() => systemRandom.token()),
    guardMode: guardMode(options.guard),
    polls: true,
    telemetry: checkTelemetry(options.telemetry),
  } as const;
  return { source, durability, codec, contents, parts, signal: checkSignal(options.signal, what) };
}

export function checkTelemetry(telemetry: unknown): Telemetry | undefined {
  if (telemetry === undefined) return undefined;
  const { begin, correlate } = (telemetry ?? {}) as Partial<Telemetry>;
  if (typeof begin === "function" && typeof correlate === "function") return telemetry as Telemetry;
  throw new RepriseError(
    "BAD_OPTIONS",
    `telemetry: expected the result of openTelemetry(), got ${inspect(telemetry, { depth: 0 })}. Import it from "reprise/opentelemetry".`,
  );
}

/** How strictly replay compares code with a journal, unless a definition says otherwise. */
export function defaultDeterminism(): Determinism {
  return process.env["NODE_ENV"] === "production" ? "per-type" : "strict";
}

/** runtimes.M1. What a run's row says about a process that moved it; not hashed. */
export function runtimeText(code?: string): string {
  const { node, v8, icu, tz } = process.versions;
  const runtime: Runtime = { arch: process.arch, ...(code !== undefined && { code }), engine: ENGINE_NAME };
  return JSON.stringify({ ...runtime, icu, node, tz, v8 });
}

/** A commit, a tag or the digest of an image: printable, without spaces. */
const CODE = /^[\u0021-\u007e]{1,200}$/;

export function checkCode(code: unknown, what: string): string | undefined {
  if (code === undefined || (typeof code === "string" && CODE.test(code))) return code;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected 1 to 200 printable ASCII characters without spaces, such as a commit or the digest of an image, got ${inspect(code)}.`,
  );
}

export function checkObject(value: unknown, expected: string): void {
  if (typeof value === "object" && value !== null) return;
  throw new RepriseError("BAD_OPTIONS", `${expected}, got ${String(value)}.`);
}

/** The names of the queues to work on, made known to the registry; undefined: all. */
export function queueNames(registry: Registry, queues: unknown): readonly string[] | undefined {
  if (queues === undefined) return undefined;
  if (!Array.isArray(queues) || queues.length === 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      "worker.queues: expected an array of queues made with queue(), at least one.",
    );
  for (const queue of queues as readonly Queue[]) registry.addQueue(queue);
  return (queues as readonly Queue[]).map(({ name }) => name);
}

export function checkConcurrency(concurrency: number): number {
  if (Number.isSafeInteger(concurrency) && concurrency >= 1) return concurrency;
  throw new RepriseError("BAD_OPTIONS", `Expected a concurrency of 1 or more, got ${String(concurrency)}.`);
}

export function checkLease(leaseMs: number): number {
  if (leaseMs >= 100) return leaseMs;
  throw new RepriseError("BAD_OPTIONS", `Expected a lease of at least 100 ms, got ${leaseMs} ms.`);
}

/** Undefined: the default of the worker. */
export function checkMemory(memory: Size | undefined): number | undefined {
  if (memory === undefined) return undefined;
  const bytes = toBytes(memory, "worker.memory");
  if (bytes >= MIN_MEMORY) return bytes;
  throw new RepriseError(
    "BAD_OPTIONS",
    `worker.memory: expected 1 MiB or more for the runs that the worker keeps in memory, got ${bytes} bytes. Give more, or leave the option out.`,
  );
}

export function checkDurability(durability: unknown): "full" | "relaxed" {
  if (durability === "full" || durability === "relaxed") return durability;
  throw new RepriseError("BAD_OPTIONS", `Expected a durability of "full" or "relaxed", got ${String(durability)}.`);
}

/** Also used by the test kit. The default depends on NODE_ENV. */
export function guardMode(guard: unknown): GuardMode {
  if (guard === undefined) return process.env["NODE_ENV"] === "production" ? "off" : "error";
  if (guard === "error" || guard === "warn" || guard === "off") return guard;
  throw new RepriseError("BAD_OPTIONS", `guard: expected "error", "warn" or "off", got ${inspect(guard)}.`);
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

/** Refuses anything that answers no questions. */
export function checkMemos(memos: unknown): ForeignMemos | undefined {
  if (memos === undefined) return undefined;
  const { ask, compare } = (memos ?? {}) as Partial<ForeignMemos>;
  if (typeof ask === "function" && typeof compare === "function") return memos as ForeignMemos;
  throw new RepriseError(
    "BAD_OPTIONS",
    `memos: expected \`memos\` of a federation, got ${inspect(memos, { depth: 0 })}. Pass (await createFederation({ … })).memos.`,
  );
}

/** Refuses anything that is not a list of definitions. */
export function registryOf(definitions: unknown, what = "createEngine"): Registry {
  if (!Array.isArray(definitions))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected an array of workflows, graphs, flows and tasks as \`definitions\`, got ${typeof definitions}.`,
    );
  return new Registry(definitions as (Definition | AnyTask)[]);
}
