// Worker profile: what a worker publishes when it registers, and with each heartbeat. For `top` and `doctor`; the engine decides
// nothing by it. A store keeps both as JSON text in its rows of workers.

import type { Backlog } from "./backlog.ts";
import { nodeRoute } from "./completion.ts";
import type { DefinitionVersion } from "./generation.ts";

/** Identifies a worker and lists what it claims. */
export interface WorkerProfile {
  readonly host: string;
  readonly pid: number;
  readonly definitions: readonly DefinitionVersion[];
  /** The names of the items it claims: tasks, and routes of flows' nodes. */
  readonly items: readonly string[];
  /** The destinations it delivers messages to. */
  readonly destinations: readonly string[];
  /** Undefined: all. */
  readonly queues?: readonly string[];
  readonly labels?: readonly string[];
  /** Registered definitions that it does not claim: it serves other queues, or lacks the label. */
  readonly unclaimed: readonly UnclaimedDefinition[];
  readonly concurrency: number;
  readonly leaseMs: number;
}

/** A definition, or a task (without `version`). */
export interface UnclaimedDefinition {
  readonly name: string;
  readonly version?: number;
  readonly queue?: string;
  readonly label?: string;
}

/** What the worker did since its previous heartbeat, and what it holds. */
export interface WorkerActivity {
  /** The time since the previous heartbeat. */
  readonly overMs: number;
  readonly runsStarted: number;
  readonly runsEnded: number;
  /** Ended commands: operations, tasks, nodes, timers. */
  readonly steps: number;
  readonly runsHeld: number;
  /** User functions that are running. */
  readonly running: number;
  readonly isDraining: boolean;
}

/** Undefined: the worker published nothing, or another version wrote the text. */
export function readWorkerProfile(text: string | undefined): WorkerProfile | undefined {
  const profile = readObject<WorkerProfile>(text);
  const isComplete = profile !== undefined && Array.isArray(profile.definitions) && Array.isArray(profile.items);
  if (!isComplete) return undefined;
  return { ...profile, destinations: profile.destinations ?? [], unclaimed: profile.unclaimed ?? [] };
}

/** Whether this worker can claim it. */
export function canClaim({ definitions, items }: WorkerProfile, backlog: Backlog): boolean {
  const { kind, name, version, queue, label } = backlog;
  if (kind === "task") return items.includes(name);
  if (kind === "node") return items.includes(nodeRoute(name, version ?? 0, queue, label));
  return definitions.some((one) => one.name === name && one.version === version);
}

export function readWorkerActivity(text: string | undefined): WorkerActivity | undefined {
  const activity = readObject<WorkerActivity>(text);
  if (activity === undefined || !(activity.overMs > 0)) return undefined;
  // A worker of version 0.1 publishes these two under other names.
  return { ...activity, runsStarted: activity.runsStarted ?? 0, running: activity.running ?? 0 };
}

function readObject<T extends object>(text: string | undefined): (Partial<T> & T) | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}

/** A short form of a worker's random number, for people, beside its name. */
export function workerTag(worker: number): string {
  return worker < 10_000 ? String(worker) : worker.toString(36).slice(-4);
}
