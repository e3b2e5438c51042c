// Replay of recorded entries: a journal that is at hand, from a store, a bundle or a saved file, against the code.

import { systemTimers } from "../base/index.ts";
import type { Definition, Entry } from "../kernel/index.ts";
import { executionHostOf, type Registry } from "../process/index.ts";
import { Guard, replayJournal, type GuardMode, type OnDelivery, type Replay } from "../workflow/index.ts";
import { verifyPure, type PureStepVerdict } from "./verify-pure.ts";

/** A run with its complete journal. */
export interface RecordedRun {
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  /** Undefined: the newest version that is registered. */
  readonly version: number | undefined;
  readonly entries: readonly Entry[];
  /** The entries that a fork at a command shares with its origin (fork.F5); absent: none. */
  readonly shared?: readonly Entry[];
  readonly chain: string;
}

/** Replays journals with the definitions of a registry. It calls no service and writes nothing. */
export class JournalReplayer implements Disposable {
  readonly #registry: Registry;
  readonly #guard: Guard;
  readonly #onDelivery: OnDelivery | undefined;

  constructor(registry: Registry, guard: GuardMode, onDelivery?: OnDelivery) {
    this.#registry = registry;
    this.#guard = new Guard(guard, () => {});
    this.#onDelivery = onDelivery;
  }

  /** Whether the code has the definition and version of a run. */
  has({ definition, version }: Pick<RecordedRun, "definition" | "version">): boolean {
    return this.#registry.findWorkflow(definition, version) !== undefined;
  }

  /** Throws UNKNOWN_DEFINITION if the code has no such definition or version. */
  kindOf({ definition, version }: Pick<RecordedRun, "definition" | "version">): Definition["kind"] {
    return this.#registry.getWorkflow(definition, version).kind;
  }

  async replay({ id, generation, definition, version, entries, shared = [], chain }: RecordedRun): Promise<Replay> {
    const body = this.#registry.getWorkflow(definition, version);
    const parts = { registry: this.#registry, guard: this.#guard, log: () => {} };
    return replayJournal(body, {
      identity: { id, generation },
      entries: [...shared, ...entries],
      chain,
      host: executionHostOf(parts),
      timers: systemTimers,
      ...(this.#onDelivery !== undefined && { onDelivery: this.#onDelivery }),
    });
  }

  /** Executes the pure steps of a run again, and compares their results. */
  async repeatPure(run: RecordedRun): Promise<readonly PureStepVerdict[]> {
    return (await verifyPure(this.#registry, run)).steps;
  }

  [Symbol.dispose](): void {
    this.#guard.close();
  }
}
