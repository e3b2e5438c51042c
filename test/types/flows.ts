// What flows infer, and what must not compile about them. Checked by `tsc`, never run.

import {
  createEngine,
  flow,
  queue,
  task,
  typed,
  workflow,
  type Flow,
  type InputOf,
  type OutputOf,
  type TaskContext,
} from "reprise";
import { crashEverywhere } from "reprise/testing";
import { z } from "zod";

/** Compiles when the two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._same: Same<A, B> extends true ? [] : [never]): void {}

// ── API.md, program 3: import with a 500-way spread, a skipped branch and failing rows ──

interface Row {
  id: string;
  live: boolean;
}
declare function fetchRows(url: string): Promise<Row[]>;
declare function save(row: Row): Promise<number>;
declare function zip(rows: readonly Row[]): Promise<Uint8Array>;
export const csvImport = flow("csv-import", {
  input: z.object({ url: z.string(), dry: z.boolean().default(false) }),
})
  .action("fetch", ["input"], { retry: { maxAttempts: 3 }, timeout: "30s" }, (_ctx, { input }) => {
    same<typeof input, { url: string; dry: boolean }>();
    return fetchRows(input.url);
  })
  .inline("rows", ["fetch"], ({ fetch }) => fetch.filter((row) => row.live))
  .spread(
    "saved",
    ["rows"],
    { concurrency: 50, settle: true },
    ({ rows }) => rows,
    (ctx, row, index) => {
      same<typeof ctx, TaskContext>();
      same<[typeof row, typeof index], [Row, number]>();
      return save(row);
    },
  )
  .when(
    "big",
    ["rows"],
    ({ rows }) => rows.length > 1000,
    (branch) => branch.action("archive", ["rows"], (_ctx, { rows }) => zip(rows)),
  )
  .otherwise("big", (branch) => branch.inline("note", ["rows"], ({ rows }) => `only ${rows.length}`))
  .inline("where", ["archive", "note"], ({ archive, note }) => {
    same<typeof note, string | undefined>();
    return note ?? `${archive?.byteLength} bytes`;
  })
  .output(["saved", "where"], ({ saved, where }) => {
    same<typeof saved, readonly PromiseSettledResult<number>[]>();
    // Behind both sides of one branch: TypeScript cannot know that one of them was taken.
    same<typeof where, string | undefined>();
    return { ok: saved.filter((one) => one.status === "fulfilled").length, where };
  });
same<typeof csvImport, Flow<"csv-import", InputOf<typeof csvImport>, { ok: number; where: string | undefined }>>();
// What is given at the door may leave out what the schema fills in.
same<InputOf<typeof csvImport>, { url: string; dry?: boolean | undefined }>();
same<OutputOf<typeof csvImport>, { ok: number; where: string | undefined }>();

// ── values ──

const double = task("double", (_ctx, n: number) => n * 2);
const child = workflow("child", async (_ctx, name: string) => ({ name }));
const narrow = queue("narrow", { concurrency: 2 });
const base = flow("base", { input: typed<{ n: number; names: readonly string[] }>() });
const all = base
  .parallel("both", ["input"], { one: async () => 1, two: (_ctx, { input }) => input.names })
  .call("doubled", ["both"], { timeout: "1m" }, double, ({ both }) => {
    same<typeof both, { readonly one: number; readonly two: readonly string[] }>();
    return both.one;
  })
  .call("called", ["input"], child, ({ input }) => input.names[0] ?? "unnamed")
  .call("sub", ["input"], csvImport, () => ({ url: "x" }))
  .spread("children", ["input"], ({ input }) => input.names, child)
  .spread("tasks", ["input"], { queue: narrow, label: "gpu" }, ({ input }) => [input.n], double)
  .spread("keyed", ["input"], { queue: narrow, key: (n: number) => `${n}` }, ({ input }) => [input.n], double)
  .action("caught", ["input"], { label: "eu", catch: (error) => error.message.length }, async () => 1)
  .action("limited", ["input"], { queue: narrow, key: ({ input }) => input.names[0] ?? "none" }, async () => 1)
  .inline("nothing", [], () => null)
  .output(["doubled", "called", "sub", "children", "tasks", "caught", "nothing"], (given) => given);
same<
  OutputOf<typeof all>,
  {
    readonly doubled: number;
    readonly called: { name: string };
    readonly sub: { ok: number; where: string | undefined };
    readonly children: readonly { name: string }[];
    readonly tasks: readonly number[];
    readonly caught: number;
    readonly nothing: null;
  }
>();

// ── one form: name, needs, options, functions; functions among the options do not disturb inference ──

base
  .action(
    "x",
    ["input"],
    {
      queue: narrow,
      catch: (error, { input }) => {
        same<[typeof error, typeof input], [Error, { n: number; names: readonly string[] }]>();
        return { n: input.n };
      },
    },
    async (ctx, { input }) => {
      same<[typeof ctx, typeof input.names], [TaskContext, readonly string[]]>();
      return { n: 1 };
    },
  )
  .output(["x"], ({ x }) => same<typeof x, { n: number }>());
base
  .spread("settled", ["input"], { settle: true }, ({ input }) => input.names, child)
  .spread(
    "plain",
    ["input"],
    { concurrency: 2 },
    ({ input }) => input.names,
    (_ctx, name) => name.length,
  )
  .parallel("both", ["settled"], { retry: { maxAttempts: 2 } }, { n: async (_ctx, { settled }) => settled.length })
  .output(["settled", "plain", "both"], ({ settled, plain, both }) => {
    same<typeof settled, readonly PromiseSettledResult<{ name: string }>[]>();
    same<[typeof plain, typeof both], [readonly number[], { readonly n: number }]>();
  });
// @ts-expect-error the names come before the options
base.action("x", { needs: ["input"], retry: { maxAttempts: 2 } }, async () => 1);
// @ts-expect-error and are not among them
base.action("x", ["input"], { needs: ["input"] }, async () => 1);
base.spread(
  "x",
  // @ts-expect-error in no method
  { needs: ["input"], settle: true },
  () => [1],
  async () => 1,
);

// ── branches: one need is skipped with it, several may be missing, the output always comes ──

export const branches = base
  .when(
    "outer",
    ["input"],
    ({ input }) => input.n > 1,
    (outer) =>
      outer
        .inline("a", ["input"], () => 1)
        .when(
          "inner",
          ["a"],
          ({ a }) => a > 0,
          (inner) => inner.inline("b", ["a"], ({ a }) => (same<typeof a, number>(), "b")),
        ),
  )
  .inline("alone", ["a"], ({ a }) => (same<typeof a, number>(), a))
  .inline("joined", ["b", "input"], ({ b, input }) => {
    same<typeof b, string | undefined>();
    return `${b} ${input.n}`;
  })
  .spread(
    "each",
    ["b"],
    ({ b }) => [b],
    (_ctx, item) => (same<typeof item, string>(), 1),
  )
  .output(["alone", "joined", "each"], ({ alone, joined, each }) => {
    same<typeof alone, number | undefined>();
    // At least one of its needs is always there.
    same<typeof joined, string>();
    same<typeof each, readonly number[] | undefined>();
    return 1;
  });

// ── names above only ──

// @ts-expect-error what is derived in memory goes with what it is derived from
base.inline("label", ["input"], { label: "gpu" }, () => 1);
// @ts-expect-error a child has the label of its own definition
base.call("label", ["input"], { label: "gpu" }, child, () => "unnamed");
// @ts-expect-error nothing of this name stands above
base.inline("x", ["missing"], () => 1);
// @ts-expect-error below, not above
base.action("a", ["b"], () => 1).action("b", ["input"], () => 1);
// @ts-expect-error a name stands for one value
base.inline("x", ["input"], () => 1).inline("x", ["input"], () => 2);
// @ts-expect-error the input is a name too
base.inline("input", ["input"], () => 1);
// @ts-expect-error only what was asked for is given
base.inline("a", ["input"], () => 1).inline("b", ["a"], ({ input }) => input);
// @ts-expect-error there is no when of this name
base.otherwise("missing", (b) => b);
base
  .when(
    "w",
    ["input"],
    () => true,
    (b) => b,
  )
  .when(
    // @ts-expect-error one when, one name
    "w",
    ["input"],
    () => true,
    (b) => b,
  );
base.when(
  "w",
  ["input"],
  () => true,
  // @ts-expect-error a branch is what its function returns
  () => undefined,
);

// ── functions ──

base.when(
  "w",
  ["input"],
  // @ts-expect-error a test holds or does not, at once
  async () => true,
  (b) => b,
);
base.spread(
  "x",
  ["input"],
  // @ts-expect-error items are a list
  ({ input }) => input.n,
  () => 1,
);
base.spread(
  "x",
  ["input"],
  // @ts-expect-error an item is what the list holds
  ({ input }) => input.names,
  (_ctx, item: number) => item,
);
// @ts-expect-error what a task takes is what the items are
base.spread("x", ["input"], ({ input }) => input.names, double);
// @ts-expect-error the input of what is called
base.call("x", ["input"], double, () => "two");
// @ts-expect-error a child too
base.call("x", ["input"], child, ({ input }) => input.n);
// @ts-expect-error a builder is no definition yet
base.call("x", ["input"], base, ({ input }) => input);
// @ts-expect-error catch gives what the action gives
base.action("x", ["input"], { catch: () => "text" }, async () => 1);
// @ts-expect-error no such option
base.action("x", ["input"], { concurrency: 3 }, async () => 1);
// @ts-expect-error an inline node is not retried
base.inline("x", ["input"], { retry: { maxAttempts: 2 } }, () => 1);
// @ts-expect-error parallel actions are functions
base.parallel("x", ["input"], { one: 1 });
// @ts-expect-error a flow says what it takes
flow("none", {});

// ── without .output it is no definition ──

void (async () => {
  // @ts-expect-error it has no output
  await createEngine({ store: "sqlite::memory:", definitions: [base] });
  const engine = await createEngine({ store: "sqlite::memory:", definitions: [all, csvImport] });
  // @ts-expect-error nor can it be started
  await engine.start(base, { n: 1, names: [] });
  // @ts-expect-error the input of a run
  await engine.start(csvImport, { address: "x" });
  const run = await engine.start(csvImport, { url: "x" });
  same<Awaited<ReturnType<typeof run.result>>, { ok: number; where: string | undefined }>();
  // @ts-expect-error a flow has no ports
  await run.signal("go");
  const { output } = await crashEverywhere(csvImport, { url: "x" });
  same<typeof output, { ok: number; where: string | undefined }>();
});
