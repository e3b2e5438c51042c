// Provenance: `why` and `uses` on random families, against a naive search; and on real runs.

import fc from "fast-check";
import { expect, test } from "vitest";
import { Provenance, type Hop, type ProvenanceRun, type StepRecord } from "../../src/receipts/index.ts";

const KEYS = Array.from({ length: 9 }, (_, n) => `k${n}`);
const maybe = fc.option(fc.constantFrom(...KEYS), { nil: undefined });

const step = (graph: boolean) =>
  fc
    .tuple(fc.nat(2), fc.nat(3), maybe, maybe, maybe)
    .map(([at, position, used, out, error]): Omit<StepRecord, "kind"> => {
      const command = graph
        ? position === 3
          ? `Step(${at})`
          : `Node(${at}.${position})`
        : `Task(${at * 4 + position})`;
      return { command, in: used, out, error };
    });

/** Runs with parents, generations and forks, as a family may have them. */
const family = fc
  .array(
    fc.record({
      isGraph: fc.boolean(),
      input: maybe,
      output: maybe,
      steps: fc
        .boolean()
        .chain((graph) => fc.uniqueArray(step(graph), { maxLength: 6, selector: (one) => one.command })),
      link: fc.constantFrom("none", "parent", "generation", "fork"),
      to: fc.nat(5),
      command: fc.nat(5),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((made) => {
    const runs: ProvenanceRun[] = [];
    for (const [index, { input, output, steps, link, to, command }] of made.entries()) {
      const other = runs.length === 0 ? undefined : runs[to % runs.length];
      const isNext =
        link === "generation" &&
        other !== undefined &&
        !runs.some(({ id, generation }) => id === other.id && generation > other.generation);
      const named = other?.steps[command % Math.max(1, other.steps.length)]?.command ?? "Task(0)";
      runs.push({
        id: isNext ? other.id : `run-${index}`,
        generation: isNext ? other.generation + 1 : 0,
        definition: "d",
        claim: `claim-${index}`,
        input,
        output,
        steps: steps.map((one) => ({ kind: "task", ...one })),
        parent:
          link === "parent" && other ? { run: other.id, generation: other.generation, command: named } : undefined,
        fork: link === "fork" && other ? { run: other.id, command: named } : undefined,
      });
    }
    return runs;
  });

// ── the naive search: every edge is a line, and distances are found by trying all of them until nothing changes ──

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly key?: string;
}

const place = (run: string, generation: number, what: string): string => `${run}#${generation} ${what}`;

function naiveEdges(runs: readonly ProvenanceRun[]): {
  used: Edge[];
  generated: Edge[];
  informs: Edge[];
  all: string[];
} {
  const [used, generated, informs]: [Edge[], Edge[], Edge[]] = [[], [], []];
  const all: string[] = [];
  for (const { id, generation, input, output, error, claim, steps } of runs) {
    const [start, end] = [place(id, generation, "start"), place(id, generation, "end")];
    all.push(start, ...steps.map(({ command }) => place(id, generation, command)), end);
    for (const key of [input]) if (key) used.push({ from: start, to: key });
    for (const key of [output, error, claim]) if (key) generated.push({ from: end, to: key });
    informs.push({ from: start, to: end });
    for (const record of steps) {
      const at = place(id, generation, record.command);
      if (record.in) used.push({ from: at, to: record.in });
      for (const key of [record.out, record.error]) if (key) generated.push({ from: at, to: key });
      const [, k] = /^Node\((\d+)\./.exec(record.command) ?? [];
      const before = `Step(${Number(k) - 1})`;
      const hasBefore = k !== undefined && steps.some(({ command }) => command === before);
      informs.push({ from: hasBefore ? place(id, generation, before) : start, to: at }, { from: at, to: end });
      if (k !== undefined && steps.some(({ command }) => command === `Step(${k})`))
        informs.push({ from: at, to: place(id, generation, `Step(${k})`) });
    }
  }
  for (const { id, generation, parent, fork } of runs) {
    const start = place(id, generation, "start");
    if (generation > 0) informs.push({ from: place(id, generation - 1, "end"), to: start });
    if (parent) {
      informs.push({ from: place(parent.run, parent.generation, "start"), to: start });
      informs.push({ from: place(id, generation, "end"), to: place(parent.run, parent.generation, parent.command) });
    }
    if (fork) {
      const named = place(fork.run, 0, fork.command);
      informs.push({ from: all.includes(named) ? named : place(fork.run, 0, "start"), to: start });
    }
  }
  return { used, generated, informs: informs.filter(({ from, to }) => all.includes(from) && all.includes(to)), all };
}

/** The activities by distance, each level in the order of the family. */
function naive(runs: readonly ProvenanceRun[], key: string, direction: "why" | "uses"): readonly string[] {
  const { used, generated, informs, all } = naiveEdges(runs);
  const [makes, needs] = direction === "why" ? [generated, used] : [used, generated];
  const distance = new Map<string, number>();
  for (const { from, to } of makes) if (to === key) distance.set(from, 1);
  for (const { id, generation } of runs)
    if (key === `run:${id}`) distance.set(place(id, generation, direction === "why" ? "end" : "start"), 1);
  for (let changed = true; changed;) {
    changed = false;
    for (const [at, far] of [...distance]) {
      const next = [
        ...needs
          .filter(({ from }) => from === at)
          .flatMap(({ to }) => makes.filter((one) => one.to === to).map(({ from }) => from)),
        ...informs.flatMap(({ from, to }) =>
          direction === "why" ? (to === at ? [from] : []) : from === at ? [to] : [],
        ),
      ];
      for (const one of next)
        if ((distance.get(one) ?? Infinity) > far + 1) {
          distance.set(one, far + 1);
          changed = true;
        }
    }
  }
  return [...distance]
    .toSorted(([a, far], [b, farther]) => far - farther || all.indexOf(a) - all.indexOf(b))
    .map(([at, far]) => `${far} ${at}`);
}

const shown = ({ depth, run, generation, part, command }: Hop): string =>
  `${depth} ${place(run, generation, command ?? part)}`;

test("why and uses find what a naive search finds, nearest first, in the order of the family", () => {
  fc.assert(
    fc.property(family, fc.constantFrom(...KEYS, "claim-0", "run:run-0"), (runs, key) => {
      const provenance = new Provenance(runs);
      for (const direction of ["why", "uses"] as const) {
        const { hops, isCut } = provenance[direction](key, { limit: 10_000 });
        expect(isCut).toBe(false);
        expect(hops.map(shown)).toEqual(naive(runs, key, direction));
      }
    }),
    { numRuns: 500 },
  );
});

test("a limit of depth or number cuts the same answer, and says so", () => {
  fc.assert(
    fc.property(family, fc.constantFrom(...KEYS, "claim-0"), fc.nat(4), fc.nat(12), (runs, key, depth, limit) => {
      const provenance = new Provenance(runs);
      const whole = provenance.why(key, { limit: 10_000 }).hops;
      const near = whole.filter((hop) => hop.depth <= depth);
      expect(provenance.why(key, { limit: 10_000, depth })).toEqual({ hops: near, isCut: near.length < whole.length });
      expect(provenance.why(key, { limit })).toEqual({ hops: whole.slice(0, limit), isCut: whole.length > limit });
    }),
    { numRuns: 300 },
  );
});

test("a hop says by which key it was reached", () => {
  const step1 = { command: "Task(0)", kind: "task", name: "price", in: "k1", out: "k2" } as const;
  const step2 = { command: "Task(1)", kind: "task", name: "tax", in: "k2", out: "k3" } as const;
  const runs = [
    { id: "a", generation: 0, definition: "order", claim: "c", input: "k1", output: "k3", steps: [step1, step2] },
  ];
  const { hops } = new Provenance(runs).why("k3", { limit: 10 });
  expect(hops.map(({ depth, relation, key, command, part }) => [depth, relation, key, command ?? part])).toEqual([
    [1, "generated", "k3", "Task(1)"],
    [1, "generated", "k3", "end"],
    [2, "informed", undefined, "start"],
    [2, "generated", "k2", "Task(0)"],
  ]);
});
