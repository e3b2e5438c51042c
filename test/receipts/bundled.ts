// Bundled: small runs of every kind in a store, and their bundles.

import { flow, graph, last, START, END, task, typed, workflow, FatalError } from "reprise";
import type { Store } from "../../src/kernel/index.ts";
import { withStoreToRead } from "../../src/cli/open-store.ts";
import {
  checkBundle,
  readGenerations,
  readRun,
  signingKeyOf,
  writeBundle,
  type BundleForm,
  type BundleInput,
  type BundleReport,
  type SigningKey,
  type VerifyingKey,
} from "../../src/receipts/index.ts";
import { incomplete, pages } from "../cli/definitions.ts";
import { StoreWithRuns } from "../cli/store-with-runs.ts";
import type { Verdict } from "./second-checker.ts";

export const KEY = signingKeyOf(Buffer.alloc(32, 7), "edge7");
export const FORMS: readonly BundleForm[] = ["full", "hash-only", "blind"];

const flaky = task("flaky", { retry: { maxAttempts: 3, baseDelay: 1 } }, (ctx, n: number) => {
  if (ctx.attempt === 1) throw new Error("not yet");
  return n * 2;
});
export const kid = workflow("kid", async (ctx, n: number) => ctx.run("double", { n }, () => n * 2));
const sum = workflow("sum", async (ctx, n: number) => {
  const doubled = await ctx.task(flaky, n);
  ctx.state.set("doubled", { doubled, word: "zählen <b>" });
  await ctx.sleep(1);
  return doubled + (await ctx.child(kid, n));
});
const refused = workflow("refused", async (ctx) => {
  await ctx.run("ask", () => {
    throw new FatalError("not today");
  });
});
const words = graph("words", { state: { words: last<readonly string[]>([]) } })
  .node("one", async (ctx) => ({ words: [await ctx.run("find", { place: 1 }, () => "one")] }))
  .node("two", async (_ctx, state) => ({ words: [...state.words, "two"] }))
  .edge(START, "one")
  .edge("one", "two")
  .edge("two", END);
const prices = flow("prices", { input: typed<readonly number[]>() })
  .action("rate", ["input"], () => 2)
  .spread(
    "taxed",
    ["input", "rate"],
    ({ input }) => input,
    (_ctx, price) => price * 2,
  )
  .call("asked", ["rate"], kid, ({ rate }) => rate)
  .output(["taxed", "asked"], ({ taxed, asked }) => [...taxed, asked]);

export const DEFINITIONS = [kid, sum, flaky, refused, words, prices, pages, incomplete];

/** One run of each kind and end. */
export async function runsOfAllKinds(): Promise<StoreWithRuns> {
  const runs = new StoreWithRuns(DEFINITIONS);
  return runs.start(
    { id: "kid", what: kid, input: 4, until: "completed" },
    { id: "sum", what: sum, input: 3, tags: ["a", "ü"], until: "completed" },
    { id: "refused", what: refused, until: "failed" },
    { id: "words", what: words, until: "completed" },
    { id: "prices", what: prices, input: [1, 2, 3], until: "completed" },
    { id: "pages", what: pages, input: 1, until: "waiting" },
    { id: "stopped", what: incomplete, until: "blocked" },
  );
}
export const IDS = ["kid", "sum", "refused", "words", "prices", "pages", "stopped"] as const;

/** The text of a bundle of every generation of a run. */
export async function bundleText(
  store: Store,
  id: string,
  form: BundleForm,
  /** Null: the bundle is not signed. */
  key: SigningKey | null = KEY,
): Promise<string> {
  let text = "";
  for (const record of await readGenerations(store, id))
    for await (const line of writeBundle(await readRun(store, record), {
      form,
      key: key ?? undefined,
      engine: "reprise/0.0.0",
    }))
      text += `${line}\n`;
  return text;
}

export function readingStore<T>(runs: StoreWithRuns, work: (store: Store) => Promise<T>): Promise<T> {
  return withStoreToRead(runs.url, work);
}

export function inputOf(bytes: Uint8Array, chunk = 4_096): BundleInput {
  return {
    async *read(from) {
      for (let at = from; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
    },
  };
}

export async function reportsOf(
  bytes: Uint8Array,
  keys: readonly VerifyingKey[] = [KEY],
): Promise<readonly BundleReport[]> {
  return Array.fromAsync(checkBundle(inputOf(bytes), keys));
}

/** Levels 0 and 1 of a section. */
export function verdictOf({ problem, signature, statement }: BundleReport): Verdict {
  if (problem !== undefined) return problem.kind;
  if (signature.status === "bad_signature") return "damaged";
  return signature.status === "trusted" && signature.origin === statement?.origin ? "fine" : "untrusted";
}
