// Shrink: makes a failing seed smaller: removes kinds of faults, parts of the workload, workers and size one by one,
// then single faults. Options that still fail, in any way, are kept.

import type { Fault } from "./faults.ts";
import { simulate, type SimOptions, type SimReport } from "./simulate.ts";

export interface Shrunk {
  readonly options: SimOptions;
  readonly report: SimReport;
  readonly tries: number;
}

const MAX_TRIES = 200;

export async function shrink(options: SimOptions, failed: SimReport): Promise<Shrunk> {
  const shrinking = new Shrinking(options, failed);
  await shrinking.withoutKinds();
  await shrinking.withoutParts();
  await shrinking.withFewer();
  await shrinking.withoutFaults();
  return shrinking;
}

class Shrinking implements Shrunk {
  options: SimOptions;
  report: SimReport;
  tries = 0;

  constructor(options: SimOptions, report: SimReport) {
    this.options = options;
    this.report = report;
  }

  /** Keeps these options if they still fail. */
  async #try(change: Partial<SimOptions>): Promise<boolean> {
    if (this.tries >= MAX_TRIES) return false;
    this.tries += 1;
    const options = { ...this.options, ...change };
    const report = await simulate(options);
    if (report.problems.length === 0) return false;
    this.options = options;
    this.report = report;
    return true;
  }

  async withoutKinds(): Promise<void> {
    const kinds = new Set(this.report.fired.map(kindOf));
    await this.#try({ faults: [...kinds] });
    for (const kind of kinds) {
      const others = (this.options.faults ?? [...kinds]).filter((other) => other !== kind);
      const always = this.options.always?.filter((other) => other !== kind);
      await this.#try({ faults: others, ...(always !== undefined && { always }) });
    }
  }

  async withoutParts(): Promise<void> {
    for (const part of this.report.parts) {
      const others = (this.options.scenario ?? this.report.parts).filter((other) => other !== part);
      if (others.length > 0) await this.#try({ scenario: others });
    }
  }

  async withFewer(): Promise<void> {
    for (let workers = this.report.workers - 1; workers >= 1; workers -= 1) if (!(await this.#try({ workers }))) break;
    for (const scale of [0.25, 0.5]) if (await this.#try({ scale })) break;
  }

  /** Delta debugging: removes smaller and smaller pieces of the list. */
  async withoutFaults(): Promise<void> {
    for (let size = Math.ceil(this.report.fired.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let at = 0; at < this.report.fired.length;) {
        const keep = [...this.report.fired.slice(0, at), ...this.report.fired.slice(at + size)];
        if (!(await this.#try({ keep: new Set(keep) }))) at += size;
      }
    }
  }
}

function kindOf(fired: string): Fault {
  return fired.slice(0, fired.indexOf(":")) as Fault;
}

/** The command that reproduces it. */
export function reproduction(options: SimOptions): string {
  const { seed, store, mode, scenario, faults, always, keep, workers, scale } = options;
  const option = (name: string, value: string | number | undefined): string =>
    value === undefined ? "" : ` --${name} ${value}`;
  const list = (values: Iterable<string> | undefined): string | undefined =>
    values === undefined ? undefined : [...values].join(",") || "none";
  return (
    `npm run sim -- --seed ${seed} --store ${store}${option("mode", mode)}${option("scenario", list(scenario))}` +
    `${option("faults", list(faults))}${option("always", list(always))}${option("keep", list(keep))}${option("workers", workers)}${option("scale", scale)}`
  );
}
