// The stores a simulation can stand on, and what lies on the way to them.

import type { Random } from "../../src/base/index.ts";
import type { Database, Store } from "../../src/kernel/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import type { Faults } from "./faults.ts";
import type { Witness } from "./process-store.ts";
import type { ProcessInstance, OpenedStore } from "./process.ts";
import type { EventLoop } from "./scheduler.ts";

export type StoreName = "sqlite" | "remote";

export interface StoresHost {
  /** Of the world itself: never killed, never paused. */
  readonly loop: EventLoop;
  readonly random: Random;
  readonly faults: Faults;
  readonly latency: RandomSource;
  readonly witness: Witness;
  /** Lets a process stand still for longer than its lease, right where it is. */
  pause(loop: EventLoop): void;
  /** A mutant: the same store with one promise broken. */
  readonly wrap?: ((store: Store, instance: ProcessInstance) => Store) | undefined;
}

export interface SimStores {
  readonly kind: StoreName;
  /** Without faults, for those who look at the end. */
  calm: Store;
  /** What `ctx.tx` is asked for. */
  readonly database: Database<any>;
  open(instance: ProcessInstance): Promise<OpenedStore>;
  /**
   * The database returns to its state after an earlier commit; answers how. A restore goes back by `leastMs` or more.
   * Undefined: there is nothing to go back to.
   */
  rollBack(chance: RandomSource, leastMs: number): string | undefined;
  /** `calm` anew: it shall not depend on how a store copes with lost history. */
  reopen(): Promise<void>;
  close(): Promise<void>;
  /** Leaves nothing on the machine, however the world has ended. */
  discard(): void;
}

/** How long a call is on its way: mostly no time at all, sometimes long. Without this, races are never lost. */
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

/** Right before or after something is written: the worst moments to die, or to stand still. */
export async function crashPoint(host: StoresHost, instance: ProcessInstance, where: string): Promise<void> {
  if (host.faults.happens("kill", 0.02)) return instance.die(where);
  if (!host.faults.happens("pause", 0.03)) return;
  host.pause(instance.loop);
  await instance.loop.sleep(0);
}
