// What a worker says: about itself when it registers, and with each heartbeat about its work. For people; nothing is decided
// by it but what they are told. A store keeps both texts as they are.

import type { Backlog } from "./backlog.ts";
import { nodeRoute } from "./completion.ts";
import type { DefinitionVersion } from "./generation.ts";

/** What this worker is and what it claims. */
export interface WorkerProfile {
  readonly host: string;
  readonly pid: number;
  readonly definitions: readonly DefinitionVersion[];
  /** The names it claims items by: of tasks, and routes of flows' nodes. */
  readonly items: readonly string[];
  /** Where it delivers messages to. */
  readonly destinations: readonly string[];
  /** Undefined: all. */
  readonly queues?: readonly string[];
  readonly labels?: readonly string[];
  /** What it knows and does not claim, because it works on other queues or does not have the label. */
  readonly unclaimed: readonly UnclaimedDefinition[];
  readonly concurrency: number;
  readonly leaseMs: number;
}

/** A definition, or a task, which has no version. */
export interface UnclaimedDefinition {
  readonly name: string;
  readonly version?: number;
  readonly queue?: string;
  readonly label?: string;
}

/** What it has done since the heartbeat before, and what it has in hand. */
export interface WorkerActivity {
  /** How long ago that was. */
  readonly overMs: number;
  readonly runsStarted: number;
  readonly runsEnded: number;
  /** Commands of runs that came to an end: operations, tasks, nodes, timers. */
  readonly steps: number;
  readonly runsHeld: number;
  /** User functions that are running. */
  readonly running: number;
  readonly isDraining: boolean;
}

/** Undefined where a worker has said nothing, or what another version of this program wrote. */
export function readWorkerProfile(text: string | undefined): WorkerProfile | undefined {
  const about = readObject<WorkerProfile>(text);
  const isWhole = about !== undefined && Array.isArray(about.definitions) && Array.isArray(about.items);
  if (!isWhole) return undefined;
  return { ...about, destinations: about.destinations ?? [], unclaimed: about.unclaimed ?? [] };
}

/** Whether this worker would take it. */
export function canClaim({ definitions, items }: WorkerProfile, waiting: Backlog): boolean {
  const { kind, name, version, queue, label } = waiting;
  if (kind === "task") return items.includes(name);
  if (kind === "node") return items.includes(nodeRoute(name, version ?? 0, queue, label));
  return definitions.some((one) => one.name === name && one.version === version);
}

export function readWorkerActivity(text: string | undefined): WorkerActivity | undefined {
  const doing = readObject<WorkerActivity>(text);
  return doing !== undefined && doing.overMs > 0 ? doing : undefined;
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

/** Workers are told apart by random numbers; a few digits of one are enough for people, beside a name. */
export function workerTag(worker: number): string {
  return worker < 10_000 ? String(worker) : worker.toString(36).slice(-4);
}
