// Contender: Reprise or another engine, as `peers` measures it. Those of bench/peers are not type-checked: they need packages that are
// installed on demand.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

export interface Contender {
  /** Processes of its own, whose CPU time counts. */
  readonly pids?: readonly number[];
  /** Starts a workflow of `count` trivial steps and returns its result, `count`. */
  run?(count: number): Promise<number>;
  /** Starts a graph of `CHAIN_LENGTH` trivial nodes and returns its result, their number. */
  chain?(): Promise<number>;
  /** Enqueues a trivial job for each index; calls `onEnd` once for each that has ended. */
  enqueue?(indexes: readonly number[], onEnd: () => void): Promise<void>;
  close(): Promise<void> | void;
}

export interface ContenderOptions {
  /** The address of an empty PostgreSQL database, or the path of a file that does not exist. */
  readonly url: string;
  /** An empty folder on the same disk. */
  readonly folder: string;
  /** The size of a pool of connections, if the contender has one to set. */
  readonly connections: number;
  /** How many workflows run at once. */
  readonly concurrency: number;
  /** How many jobs of the queue run at once. */
  readonly queueConcurrency: number;
  readonly chainLength: number;
}

export interface ContenderModule {
  /** Once before all measurements: builds what npm cannot install. The reason why it cannot is the error's message. */
  prepare?(): Promise<void> | void;
  open(options: ContenderOptions): Promise<Contender>;
}

/** From npm's working directory, the root of the repository: the compiled benchmark is elsewhere. */
export const PEERS_FOLDER = resolve("bench/peers");

export function loadContender(name: string): Promise<ContenderModule> {
  if (name === "reprise") return import("./peer-reprise.ts");
  return import(pathToFileURL(resolve(PEERS_FOLDER, `${name}.mjs`)).href) as Promise<ContenderModule>;
}
