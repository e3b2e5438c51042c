// Part: one part of a workload: its runs, the requests to them, and how each run must end.

import type { AnyTask, Database, Definition, Entry, RunRecord, Store } from "../../src/kernel/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import type { Client } from "./client.ts";
import type { Machine } from "./process.ts";

/** How a run ended. */
export interface RunEnd {
  readonly record: RunRecord;
  readonly journal: readonly Entry[];
  /** The output of a completed run. */
  readonly output: unknown;
  /** The code and message of a run that did not complete. */
  readonly error: string | undefined;
}

export interface Part {
  readonly name: string;
  /** The features it uses, for the coverage table. */
  readonly features: readonly string[];
  definitions(machine: Machine): readonly (Definition | AnyTask)[];
  /** Sends its requests until all are acknowledged. */
  drive(client: Client): Promise<void>;
  /** Checks how its runs ended; yields the problems. */
  judge(ends: ReadonlyMap<string, RunEnd>): Iterable<string>;
  /** Whether a client still waits for a result. */
  isWaitedFor?(): boolean;
  /** Checks what else is in the store, and outside of it; yields the problems. `rollbacks`: how often history went back. */
  audit?(store: Store, ends: ReadonlyMap<string, RunEnd>, rollbacks: number): AsyncIterable<string>;
}

/** What all parts share. */
export interface PartHost {
  readonly chance: RandomSource;
  readonly database: Database<any>;
  readonly kind: "sqlite" | "remote";
  /** The size: 1 is normal. */
  readonly scale: number;
  /** The results of graphs in a world without faults, by run; undefined in that world itself. */
  readonly expected: ReadonlyMap<string, string> | undefined;
}

export function between(chance: RandomSource, low: number, high: number): number {
  return low + chance.below(high - low + 1);
}

/** Compares a run's output with the expected one. */
export function* expectOutput(id: string, end: RunEnd | undefined, expected: unknown): Iterable<string> {
  if (end === undefined) return yield `I15 run ${id} was started and does not exist`;
  const [is, was] = [JSON.stringify(end.output), JSON.stringify(expected)];
  if (end.record.status !== "completed") yield `run ${id} ended as ${end.record.status}: ${end.error ?? ""}`;
  else if (is !== was) yield `run ${id} gave ${is}, expected ${was}`;
}
