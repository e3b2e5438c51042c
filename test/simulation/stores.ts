// Stores of the simulation, and the delays and crashes on the way to them.

import type { Random } from "../../src/base/index.ts";
import type { Database, Store } from "../../src/kernel/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import type { Faults } from "./faults.ts";
import type { Witness } from "./process-store.ts";
import type { ProcessInstance, OpenedStore } from "./process.ts";
import type { EventLoop } from "./scheduler.ts";

export type StoreName = "sqlite" | "remote";

export interface StoresHost {
  /** The event loop of the simulation itself: never killed, never paused. */
  readonly loop: EventLoop;
  readonly random: Random;
  readonly faults: Faults;
  readonly latency: RandomSource;
  readonly witness: Witness;
  /** Pauses a process for longer than its lease, wherever it is. */
  pause(loop: EventLoop): void;
  /** A mutant: the same store with one broken guarantee. */
  readonly wrap?: ((store: Store, instance: ProcessInstance) => Store) | undefined;
}

export interface SimStores {
  readonly kind: StoreName;
  /** A store without faults, for the final checks. */
  calm: Store;
  /** The database kind for `ctx.tx`. */
  readonly database: Database<any>;
  open(instance: ProcessInstance): Promise<OpenedStore>;
  /**
   * Returns the database to its state after an earlier commit; returns a description. A restore goes back by `leastMs` or more.
   * Undefined: there is no earlier state.
   */
  rollBack(chance: RandomSource, leastMs: number): string | undefined;
  /** Opens `calm` again: the checks must not depend on how a store handles lost history. */
  reopen(): Promise<void>;
  close(): Promise<void>;
  /** Removes all files, however the simulation ended. */
  discard(): void;
}

/** The latency of a call: mostly none, sometimes long. Without it, no race would ever be lost. */
export function latencyMs({ latency: chance, faults }: Pick<StoresHost, "latency" | "faults">): number {
  const [kind, size] = [chance.unit(), chance.unit()];
  if (kind < 0.5) return 0;
  if (faults.happens("slow", 0.1)) return size * 400;
  return size * 4;
}

export async function latency(host: StoresHost, instance: ProcessInstance): Promise<void> {
  const ms = latencyMs(host);
  if (ms > 0) await instance.loop.sleep(ms);
}

/** Right before or after a write: the worst moments to crash or to pause. */
export async function crashPoint(host: StoresHost, instance: ProcessInstance, where: string): Promise<void> {
  if (host.faults.happens("kill", 0.02)) return instance.die(where);
  if (!host.faults.happens("pause", 0.03)) return;
  host.pause(instance.loop);
  await instance.loop.sleep(0);
}
