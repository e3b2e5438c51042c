// Run models: the names of models that a run replaces, as its code sees them (fork.F8).
//
// run-models.M1. While the code receives answers that a fork shares, it sees the names of the run that recorded them: what it
//   passes to its calls is what was recorded. After the last shared answer it sees those of the fork.

import type { DecodedEntry, Delivery, ModelNames } from "../kernel/index.ts";
import type { RecordedJournal } from "./recorded-journal.ts";

/** What a run without replaced models sees. */
export const NO_MODELS: ModelNames = Object.freeze({});

interface View {
  /** The last answer that the run shares with its origin; it applies from then on. */
  readonly after: number;
  readonly models: ModelNames;
}

export class RunModels {
  /** Oldest first. Undefined: the run shares nothing. */
  readonly #views: readonly View[] | undefined;

  /** What the code sees now. */
  now: ModelNames;

  constructor({ started, shared, deliveries }: Pick<RecordedJournal, "started" | "shared" | "deliveries">) {
    this.now = namesIn(started);
    if (shared === undefined) return;
    const views = shared.forks.map((fork) => ({
      // A message that came early answers no command yet: the code before the place of the fork may not have received it.
      after:
        deliveries.findLast(({ seq, command }) => seq < fork.seq && command !== "")?.seq ?? Number.NEGATIVE_INFINITY,
      models: namesIn(fork),
    }));
    this.#views = views;
    this.now = viewAt(views, Number.NEGATIVE_INFINITY)?.models ?? namesIn(shared.origin);
  }

  /** Called before the code receives a completion. */
  receive(delivery: Delivery | DecodedEntry): void {
    if (this.#views === undefined) return;
    // A delivery without an entry number is not a replay: it belongs to the run itself.
    const seq = "seq" in delivery ? delivery.seq : Number.POSITIVE_INFINITY;
    this.now = viewAt(this.#views, seq)?.models ?? this.now;
  }
}

function viewAt(views: readonly View[], seq: number): View | undefined {
  return views.findLast(({ after }) => after <= seq);
}

function namesIn({ data: { models } }: DecodedEntry<"RunStarted">): ModelNames {
  return models === undefined ? NO_MODELS : Object.freeze({ ...models });
}
