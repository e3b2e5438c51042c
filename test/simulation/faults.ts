// Faults: which faults fire, and when, at random. Each seed has its own swarm: some kinds, each at its own intensity.
//
// Every fault that fires has a name, such as `kill:3`: the third one of its kind. A failing seed is shrunk by
// allowing only some of them.

import type { RandomSource } from "../replay/random-source.ts";
import { stream } from "./random.ts";

/**
 * `slow`: a call takes long. `kill`: a process is killed, anywhere or right before or after a write. `pause`: it is suspended
 * past its lease. `drain`: it is closed cleanly and starts again. `cut`: a call fails before it is applied. `unknown`: a write
 * is applied, not applied or applied later, and its caller gets an error. `abort`: the database aborts a transaction. `clock`: a
 * wall clock jumps.
 * `rollback`: the database loses its last commits, by a failover or a restore.
 */
export const FAULTS = ["slow", "kill", "pause", "drain", "cut", "unknown", "abort", "clock", "rollback"] as const;
export type Fault = (typeof FAULTS)[number];

/** The share of worlds that have a kind: after a rollback fewer guarantees can be checked, so most worlds have none. */
const SHARE: Partial<Record<Fault, number>> = { rollback: 0.25 };

export interface FaultOptions {
  /** Which kinds may be drawn; each seed then picks among them. */
  readonly kinds?: readonly Fault[] | undefined;
  /** Every seed has these. */
  readonly always?: readonly Fault[] | undefined;
  /** Only these may fire. */
  readonly keep?: ReadonlySet<string> | undefined;
}

export class Faults {
  /** By kind, in (0, 1]. */
  readonly intensity: ReadonlyMap<Fault, number>;
  /** The fired faults, in order. */
  readonly fired: string[] = [];
  isQuiet = false;
  readonly #streams: ReadonlyMap<Fault, RandomSource>;
  readonly #counts = new Map<Fault, number>();
  readonly #keep: ReadonlySet<string> | undefined;

  constructor(seed: number, { kinds = FAULTS, always = [], keep }: FaultOptions = {}) {
    const swarm = stream(seed, "swarm");
    const intensity = new Map<Fault, number>();
    // Drawn for every kind, so that omitting one does not change the others.
    for (const kind of FAULTS) {
      const [isIn, strength] = [swarm.happens(SHARE[kind] ?? 0.6), 0.1 + 0.9 * swarm.unit() ** 2];
      if ((isIn && kinds.includes(kind)) || always.includes(kind)) intensity.set(kind, strength);
    }
    this.intensity = intensity;
    this.#keep = keep;
    this.#streams = new Map(FAULTS.map((kind) => [kind, stream(seed, `fault ${kind}`)]));
  }

  /** Draws whether a fault of this kind fires here; the probability is scaled by its intensity. */
  happens(kind: Fault, probability: number): boolean {
    const intensity = this.intensity.get(kind);
    if (intensity === undefined || this.isQuiet) return false;
    if (!this.#streams.get(kind)!.happens(probability * intensity)) return false;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const name = `${kind}:${count}`;
    if (this.#keep !== undefined && !this.#keep.has(name)) return false;
    this.fired.push(name);
    return true;
  }

  /** Details of faults of a kind are drawn from its own stream. */
  draw(kind: Fault): RandomSource {
    return this.#streams.get(kind)!;
  }
}
