// Provenance: which activities of a family of runs led to a key, and which followed from it.
//
// provenance.P1. A step is an activity: it used its input, and generated its result or its error. Activities are linked by keys: what
//   one generated and another used.
// provenance.P2. A run has two activities of its own. Its start used the input; its end generated the output, the error and the claim.
//   The start informs every step, and every step informs the end: the code between steps may have looked at all of them.
// provenance.P3. A graph says more: the nodes of step k are informed by `Step(k-1)`, and `Step(k)` by its nodes.
// provenance.P4. Between runs: the start of a parent informs those of its children, and the end of a child the step that waited for it;
//   the end of a generation informs the start of the next one; the step that a fork starts from informs its start.
// provenance.P5. `run:<id>` stands for the ends of the run's generations when a search goes back, for their starts when it goes forward.
// provenance.P6. A search visits each activity once, at its least distance. Activities of the same distance are in the order of the
//   family, and of the claim. So the same runs give the same answer.

import { nodeItemOf } from "../kernel/index.ts";
import type { StepKind, StepRecord } from "./steps.ts";

/** One generation of a run, as far as its provenance is concerned. */
export interface ProvenanceRun {
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  /** Keys. */
  readonly claim: string;
  readonly input?: string | undefined;
  readonly output?: string | undefined;
  readonly error?: string | undefined;
  readonly steps: readonly StepRecord[];
  readonly parent?: { readonly run: string; readonly generation: number; readonly command: string } | undefined;
  /** The run that it was forked from, and the command there: `Step(3)`. */
  readonly fork?: { readonly run: string; readonly command: string } | undefined;
}

export interface Activity {
  readonly run: string;
  readonly generation: number;
  readonly part: "start" | "step" | "end";
  /** Of a step. */
  readonly command?: string | undefined;
  readonly kind?: StepKind | undefined;
  /** Of a step, as its record has it; of a run, that of its definition. */
  readonly name?: string | undefined;
  readonly used: readonly string[];
  readonly generated: readonly string[];
}

export interface Hop extends Activity {
  /** From 1. */
  readonly depth: number;
  /** How it was reached: it generated or used `key`, or it informed, or was informed by, the activity before. */
  readonly relation: "generated" | "used" | "informed";
  readonly key?: string | undefined;
}

export interface SearchLimits {
  /** The greatest distance; undefined: any. */
  readonly depth?: number | undefined;
  readonly limit: number;
}

export interface SearchResult {
  readonly hops: readonly Hop[];
  /** The limits left something out. */
  readonly isCut: boolean;
}

export class Provenance {
  readonly activities: readonly Activity[];
  readonly #generatedBy = new Map<string, number[]>();
  readonly #usedBy = new Map<string, number[]>();
  /** By `run:<id>`. */
  readonly #starts = new Map<string, number[]>();
  readonly #ends = new Map<string, number[]>();
  readonly #informedBy: number[][] = [];
  readonly #informs: number[][] = [];

  /** `runs`: a family, in order (family.F2). */
  constructor(runs: readonly ProvenanceRun[]) {
    const builder = new GraphBuilder(runs);
    this.activities = builder.activities;
    for (const [at, { run, part, used, generated }] of this.activities.entries()) {
      for (const key of used) push(this.#usedBy, key, at);
      for (const key of generated) push(this.#generatedBy, key, at);
      // provenance.P5
      if (part !== "step") push(part === "start" ? this.#starts : this.#ends, `${RUN_KEY}${run}`, at);
      this.#informedBy[at] = [];
      this.#informs[at] = [];
    }
    for (const [from, to] of builder.informing) {
      this.#informs[from]!.push(to);
      this.#informedBy[to]!.push(from);
    }
  }

  /** What the activity informed and what informed it, as positions. */
  informedBy(at: number): readonly number[] {
    return this.#informedBy[at] ?? [];
  }

  /** Whether the family has the run, or an activity that generated or used the key. */
  has(key: string): boolean {
    return this.#generatedBy.has(key) || this.#usedBy.has(key) || this.#starts.has(key);
  }

  /** What led to the key, nearest first. */
  why(key: string, limits: SearchLimits): SearchResult {
    return this.#search(key, "generated", limits);
  }

  /** What followed from the key, nearest first. */
  uses(key: string, limits: SearchLimits): SearchResult {
    return this.#search(key, "used", limits);
  }

  /** provenance.P6 */
  #search(key: string, relation: "generated" | "used", { depth: most, limit }: SearchLimits): SearchResult {
    const [byKey, informing] =
      relation === "generated" ? [this.#generatedBy, this.#informedBy] : [this.#usedBy, this.#informs];
    const hops: Hop[] = [];
    const seen = new Set<number>();
    const named = key.startsWith(RUN_KEY) ? (relation === "generated" ? this.#ends : this.#starts) : byKey;
    let level: Reached[] = (named.get(key) ?? []).map((at) => ({ at, relation, key }));
    for (let depth = 1; level.length > 0; depth += 1) {
      if (most !== undefined && depth > most) return { hops, isCut: true };
      const next: Reached[] = [];
      for (const reached of firstReasons(level)) {
        if (hops.length === limit) return { hops, isCut: true };
        const activity = this.activities[reached.at]!;
        hops.push({ ...activity, depth, relation: reached.relation, key: reached.key });
        seen.add(reached.at);
        for (const other of relation === "generated" ? activity.used : activity.generated)
          for (const at of byKey.get(other) ?? []) next.push({ at, relation, key: other });
        for (const at of informing[reached.at] ?? []) next.push({ at, relation: "informed", key: undefined });
      }
      level = next.filter(({ at }) => !seen.has(at));
    }
    return { hops, isCut: false };
  }
}

const RUN_KEY = "run:";

interface Reached {
  readonly at: number;
  readonly relation: Hop["relation"];
  readonly key: string | undefined;
}

/** In order of activities; of several reasons to reach one, a key comes before none, and the least key first. */
function firstReasons(level: readonly Reached[]): readonly Reached[] {
  const sorted = level.toSorted((a, b) => a.at - b.at || compareKeys(a.key, b.key));
  return sorted.filter(({ at }, index) => index === 0 || sorted[index - 1]!.at !== at);
}

function compareKeys(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  return b === undefined || a < b ? -1 : 1;
}

function push(map: Map<string, number[]>, key: string, at: number): void {
  const some = map.get(key);
  if (some === undefined) map.set(key, [at]);
  // An activity may have a key twice.
  else if (some.at(-1) !== at) some.push(at);
}

/** The activities of a family, and which inform which. */
class GraphBuilder {
  readonly activities: Activity[] = [];
  readonly informing: (readonly [from: number, to: number])[] = [];
  readonly #positions = new Map<string, number>();

  constructor(runs: readonly ProvenanceRun[]) {
    for (const run of runs) this.#add(run);
    for (const run of runs) this.#link(run);
  }

  /** provenance.P1, provenance.P2 */
  #add({ id: run, generation, definition: name, claim, input, output, error, steps }: ProvenanceRun): void {
    const own = { run, generation, name };
    this.#push({ ...own, part: "start", used: keys(input), generated: [] });
    for (const { command, kind, name: called, in: used, out, error: failure, kept, skipped } of steps) {
      const generated = keys(out, failure, kept, skipped);
      this.#push({ run, generation, part: "step", command, kind, name: called, used: keys(used), generated });
    }
    this.#push({ ...own, part: "end", used: [], generated: keys(output, error, claim) });
  }

  #push(activity: Activity): void {
    const { run, generation, part, command } = activity;
    // A graph may have two records of one command, such as `Cancel`: the first one has the name.
    const name = nameOf(run, generation, part, command);
    if (!this.#positions.has(name)) this.#positions.set(name, this.activities.length);
    this.activities.push(activity);
  }

  #inform(from: number | undefined, to: number | undefined): void {
    if (from !== undefined && to !== undefined) this.informing.push([from, to]);
  }

  #find(run: string, generation: number, part: Activity["part"], command?: string): number | undefined {
    return this.#positions.get(nameOf(run, generation, part, command));
  }

  #link({ id, generation, steps, parent, fork }: ProvenanceRun): void {
    const start = this.#find(id, generation, "start")!;
    const end = start + steps.length + 1;
    this.#inform(start, end);
    for (const [index, { command }] of steps.entries()) {
      const at = start + 1 + index;
      this.#inform(this.#stepBefore(id, generation, command) ?? start, at);
      const into = this.#stepAfter(id, generation, command);
      if (into !== undefined && into !== at) this.#inform(at, into);
      this.#inform(at, end);
    }
    // provenance.P4
    if (generation > 0) this.#inform(this.#find(id, generation - 1, "end"), start);
    if (parent !== undefined) {
      this.#inform(this.#find(parent.run, parent.generation, "start"), start);
      this.#inform(end, this.#find(parent.run, parent.generation, "step", parent.command));
    }
    if (fork !== undefined)
      this.#inform(this.#find(fork.run, 0, "step", fork.command) ?? this.#find(fork.run, 0, "start"), start);
  }

  /** provenance.P3. The step of a graph whose state a node of the next one, or its commands, received. */
  #stepBefore(run: string, generation: number, command: string): number | undefined {
    const step = stepOf(command);
    return step === undefined ? undefined : this.#find(run, generation, "step", `Step(${step - 1})`);
  }

  #stepAfter(run: string, generation: number, command: string): number | undefined {
    const step = stepOf(command);
    return step === undefined ? undefined : this.#find(run, generation, "step", `Step(${step})`);
  }
}

/** The step of a graph that a node, or a command of its code, is part of. */
function stepOf(command: string): number | undefined {
  return !command.startsWith("Node(") ? undefined : nodeItemOf(command.split("/")[0]!)?.step;
}

function nameOf(run: string, generation: number, part: Activity["part"], command = ""): string {
  return `${generation} ${part} ${run.length} ${run} ${command}`;
}

function keys(...some: readonly (string | undefined)[]): readonly string[] {
  return some.filter((key) => key !== undefined);
}
