// Part: a piece of a workload. It says what runs there are, what is asked of them from outside, and how each must end.

import type { AnyTask, Database, Definition, Entry, RunRecord } from "../../src/kernel/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import type { Client } from "./client.ts";
import type { Machine } from "./process.ts";

/** How a run ended. */
export interface RunEnd {
  readonly record: RunRecord;
  readonly journal: readonly Entry[];
  /** Of a run that completed. */
  readonly output: unknown;
  /** Of one that did not: code and message. */
  readonly error: string | undefined;
}

export interface Part {
  readonly name: string;
  /** What it uses, for the table of what was tried with which fault. */
  readonly features: readonly string[];
  definitions(machine: Machine): readonly (Definition | AnyTask)[];
  /** Acts until everything it asked for has been acknowledged. */
  drive(client: Client): Promise<void>;
  /** What is wrong with how the runs it started have ended, by id. */
  judge(ends: ReadonlyMap<string, RunEnd>): Iterable<string>;
  /** Whether somebody still waits for an answer. */
  isWaitedFor?(): boolean;
  /** Looks at what is outside of the store's own tables. */
  audit?(): Promise<Iterable<string>>;
}

/** What parts have in common. */
export interface PartHost {
  readonly chance: RandomSource;
  readonly database: Database<any>;
  readonly kind: "sqlite" | "remote";
  /** How much of it: 1 is the usual size. */
  readonly scale: number;
  /** What graphs come to in a world without faults, by run; not given in that world itself. */
  readonly expected: ReadonlyMap<string, string> | undefined;
}

export function between(chance: RandomSource, low: number, high: number): number {
  return low + chance.below(high - low + 1);
}

/** Compares what a run gave with what it should have given. */
export function* expectOutput(id: string, end: RunEnd | undefined, expected: unknown): Iterable<string> {
  if (end === undefined) return yield `I15 run ${id} was started and is not there`;
  const [is, was] = [JSON.stringify(end.output), JSON.stringify(expected)];
  if (end.record.status !== "completed") yield `run ${id} ended as ${end.record.status}: ${end.error ?? ""}`;
  else if (is !== was) yield `run ${id} gave ${is}, expected ${was}`;
}
