// Seeded random: numbers and UUIDs that are the same in every replay (rules.A6). A node draws by the path of its item, so
// concurrent nodes do not affect each other.

import { drawUnit, drawUuid, seedOf } from "../base/index.ts";
import type { DecodedEntry, Delivery, ModelNames } from "../kernel/index.ts";
import type { RunIdentity } from "./execution-host.ts";
import type { RecordedJournal } from "./recorded-journal.ts";
import { NO_MODELS, RunModels } from "./run-models.ts";
import type { NodeScope } from "./scope.ts";

const CODE = "workflow";

export class SeededRandom {
  readonly #identity: RunIdentity;
  #seed: bigint | undefined;
  #count = 0;
  #libraryCount = 0;
  /** Set if the effects of the run are those of its origin (fork.F6). */
  readonly #recorded: { readonly seed: bigint | undefined; readonly run: string | undefined } | undefined;
  /** The forks whose shared entries the code has not left yet. */
  #forks: readonly DecodedEntry<"RunStarted">[] | undefined;

  /** Undefined: the run replaces none, and shares nothing. */
  readonly #models: RunModels | undefined;

  constructor(identity: RunIdentity, recorded: Pick<RecordedJournal, "started" | "shared" | "deliveries">) {
    const { started, shared } = recorded;
    this.#identity = identity;
    if (shared !== undefined || started.data.models !== undefined) this.#models = new RunModels(recorded);
    // fork.F3. That of the origin.
    this.#seed = shared?.forks[0]?.data.seed ?? started.data.seed;
    this.#forks = shared?.forks;
    const { effects, run } = started.data.forked ?? {};
    if (effects === "recorded") this.#recorded = { seed: started.data.seed, run };
  }

  /** The id that code sees. With recorded effects it is that of the origin: inputs that contain it find their answers. */
  get runId(): string {
    return this.#recorded?.run ?? this.#identity.id;
  }

  /** The models that code replaces now (run-models.M1). */
  get models(): ModelNames {
    return this.#models?.now ?? NO_MODELS;
  }

  /** fork.F3. Called before the code receives a completion: the first one that a fork does not share ends the seed of its origin. */
  leaveShared(delivery: Delivery | DecodedEntry): void {
    this.#models?.receive(delivery);
    if (this.#forks === undefined) return;
    // A delivery without an entry number is not a replay: it belongs to the run itself.
    const seq = "seq" in delivery ? delivery.seq : Number.POSITIVE_INFINITY;
    const left = this.#forks.filter((fork) => fork.seq > seq);
    if (left.length === this.#forks.length) return;
    this.#forks = left.length === 0 ? undefined : left;
    // With recorded effects, what the code draws must be what its origin drew.
    this.#seed = left[0]?.data.seed ?? this.#recorded?.seed;
  }

  /** The code is where its origin was: what it does now, the origin did. */
  get isShared(): boolean {
    return this.#forks !== undefined;
  }

  unit(node: NodeScope | undefined): number {
    return node === undefined
      ? drawUnit(this.#seedOfRun(), CODE, this.#count++)
      : drawUnit(this.#seedOfRun(), node.path, node.randomCount++);
  }

  uuid(node: NodeScope | undefined): string {
    return node === undefined
      ? drawUuid(this.#seedOfRun(), CODE, this.#count++)
      : drawUuid(this.#seedOfRun(), node.path, node.randomCount++);
  }

  /** The path of a call of `ctx.deterministic`: its draws affect no others. */
  libraryPath(node: NodeScope | undefined): string {
    return node === undefined
      ? `${CODE}/library(${this.#libraryCount++})`
      : `${node.path}/library(${node.libraryCount++})`;
  }

  get seed(): bigint {
    return this.#seedOfRun();
  }

  #seedOfRun(): bigint {
    return (this.#seed ??= seedOf(this.#identity.id, this.#identity.generation));
  }
}

/** The seed that the code of a run draws from after the answers up to this entry of its history (fork.F3). */
export function seedAfter(identity: RunIdentity, recorded: RecordedJournal, upTo: number): bigint {
  const draws = new SeededRandom(identity, recorded);
  const last = recorded.deliveries.findLast(({ seq }) => seq <= upTo);
  if (last !== undefined) draws.leaveShared(last);
  return draws.seed;
}
