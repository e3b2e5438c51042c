// Rig: a new database in the temporary directory, an engine on it, and worker processes if requested.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createClient, createEngine, type Client, type Definition } from "reprise";
import { definitions } from "./definitions.ts";
import type { BenchDatabase } from "./database.ts";
import { openDatabase } from "./open-database.ts";
import { startLogging, type Federated } from "./federated.ts";
import { storeOf } from "./open-store.ts";
import { chosenTelemetry } from "./traced.ts";

export interface Usage {
  readonly cpuMs: number;
  readonly peakRssMb: number;
}

type BenchDefinition = Extract<(typeof definitions)[number], Definition>;
type BenchEngine = Client<BenchDefinition>;

/** An engine with a worker, or a client that only starts runs. */
export async function openEngine(url: string, works: boolean): Promise<Client<BenchDefinition>> {
  const options = { store: url, definitions, durability: "full", ...(await chosenTelemetry()) } as const;
  return works ? createEngine(options) : createClient(options);
}

export function usageOfThisProcess(): Usage {
  const { user, system } = process.cpuUsage();
  // The kernel's own peak, in KB: no sampling can miss it.
  return { cpuMs: (user + system) / 1_000, peakRssMb: process.resourceUsage().maxRSS / 1_024 };
}

export class Rig implements AsyncDisposable {
  readonly database: BenchDatabase;
  readonly workers: number;
  #engine: BenchEngine | undefined;
  #children: readonly ChildProcess[] = [];
  /** The CPU time of worker processes that a restart replaced. */
  #pastCpuMs = 0;

  #isApart: boolean;
  readonly #federated: Federated | undefined;
  #stopLogging: (() => Promise<void>) | undefined;

  private constructor(database: BenchDatabase, workers: number, isApart: boolean, federated: Federated | undefined) {
    this.database = database;
    this.workers = workers;
    this.#isApart = isApart;
    this.#federated = federated;
  }

  /**
   * `store`: a kind of database, or the address of an empty one. Without workers only the store is used. A single worker runs in
   * this process unless `isApart`; several workers run in their own processes.
   */
  static async open(store: string, workers: number, isApart: boolean, federated?: Federated): Promise<Rig> {
    const rig = new Rig(await openDatabase(store), workers, isApart, federated);
    // Also when interrupted: the handler turns an interrupt into an exit.
    process.once("exit", () => rig.database.remove());
    process.once("SIGINT", () => process.exit(130));
    await rig.#start();
    return rig;
  }

  get engine(): BenchEngine {
    if (this.#engine === undefined) throw new Error("the rig is closed");
    return this.#engine;
  }

  async #start(): Promise<void> {
    const inProcess = this.workers === 1 && !this.#isApart;
    this.#engine = await openEngine(this.database.url, inProcess);
    this.#stopLogging = await startLogging(storeOf(this.#engine), this.#federated);
    if (inProcess || this.workers === 0) return;
    const file = new URL(import.meta.url.endsWith(".ts") ? "worker-process.ts" : "worker-process.js", import.meta.url);
    this.#children = Array.from({ length: this.workers }, () => fork(file, [this.database.url]));
    await Promise.all(this.#children.map((child) => once(child, "message")));
  }

  async #stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        const gone = once(child, "exit");
        child.disconnect();
        await gone;
      }),
    );
    this.#children = [];
    await this.#stopLogging?.();
    await this.#engine?.close();
    this.#engine = undefined;
  }

  /** Restarts the engine and the workers, and moves a single worker into its own process or back if `isApart` is given. */
  async restart({ isApart = this.#isApart }: { readonly isApart?: boolean } = {}): Promise<void> {
    this.#pastCpuMs = (await this.usage()).cpuMs - usageOfThisProcess().cpuMs - this.database.usage().cpuMs;
    await this.#stop();
    this.#isApart = isApart;
    await this.#start();
  }

  /** The usage of all processes, including the database's. */
  async usage(): Promise<Usage> {
    const others = this.#children.map(async (child) => {
      const answered = once(child, "message");
      child.send("usage");
      return ((await answered) as [Usage])[0];
    });
    const all = [usageOfThisProcess(), this.database.usage(), ...(await Promise.all(others))];
    return {
      cpuMs: all.reduce((sum, { cpuMs }) => sum + cpuMs, this.#pastCpuMs),
      peakRssMb: all.reduce((sum, { peakRssMb }) => sum + peakRssMb, 0),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    this.database.remove();
  }
}
