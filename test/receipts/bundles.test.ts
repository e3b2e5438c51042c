import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { RepriseError, workflow } from "reprise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { canonicalJson, sha256Hex } from "../../src/base/index.ts";
import { envelopeText } from "../../src/receipts/dsse.ts";
import { claimKey, signingKeyOf, type BundleForm } from "../../src/receipts/index.ts";
import { StoreWithRuns } from "../cli/store-with-runs.ts";
import { bundleText, FORMS, IDS, KEY, kid, readingStore, reportsOf, runsOfAllKinds, verdictOf } from "./bundled.ts";
import { secondCheck } from "./second-checker.ts";

interface JournalRow {
  readonly seq: number;
  readonly type: string;
  readonly command: string;
  readonly data: Uint8Array;
}

const echo = workflow("echo", async (ctx, value: unknown) => ctx.run("echo", { value }, () => value));
const { storable } = fc.letrec<{ storable: unknown }>((tie) => ({
  storable: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.string({ unit: "grapheme" }),
    fc.constantFrom("</script>", "<!--", "\u2028\u2029\0", "\\u003c", "\ufeff", '{"form":"full"}', "\n"),
    fc.double(),
    fc.bigInt(),
    fc.date(),
    fc.constantFrom(undefined, null, true),
    fc.uint8Array({ maxLength: 20 }),
    fc.array(tie("storable"), { maxLength: 4 }),
    fc.dictionary(
      fc.string({ unit: "grapheme" }).filter((key) => key !== "__proto__"),
      tie("storable"),
      { maxKeys: 4 },
    ),
  ),
}));

let runs: StoreWithRuns;
beforeAll(async () => {
  runs = await runsOfAllKinds();
});
afterAll(() => runs[Symbol.dispose]());

function textOf(id: string, form: BundleForm): Promise<string> {
  return readingStore(runs, (store) => bundleText(store, id, form));
}

test.each(IDS)(
  "a bundle of %s is accepted in every form, by both checkers, and is the same bytes each time",
  async (id) => {
    await readingStore(runs, async (store) => {
      for (const form of FORMS) {
        const text = await bundleText(store, id, form);
        expect(await bundleText(store, id, form)).toBe(text);
        const reports = await reportsOf(Buffer.from(text));
        expect(reports.map(({ problem }) => problem)).toEqual(reports.map(() => undefined));
        expect(reports.map(verdictOf)).toEqual(reports.map(() => "fine"));
        expect(secondCheck(Buffer.from(text), [KEY.vkey])).toEqual(reports.map(() => "fine"));
      }
    });
  },
);

test("the second checker has at most 150 lines, and imports nothing but cryptography", () => {
  const source = readFileSync(new URL("second-checker.ts", import.meta.url), "utf8");
  expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
  expect([...source.matchAll(/from "(.*)"/g)].map(([, from]) => from)).toEqual(["node:crypto"]);
});

test("a claim that does not follow from the entries is damage, also where its statement is signed", async () => {
  const lines = (await textOf("kid", "full")).split("\n");
  const claim = canonicalJson({ ...JSON.parse((JSON.parse(lines[2]!) as { s: string }).s), steps: 9 });
  const key = claimKey(claim);
  const { payload } = JSON.parse(lines[1]!) as { payload: string };
  const statement = JSON.parse(Buffer.from(payload, "base64").toString());
  statement.predicate.claim = key;
  statement.subject[0].digest.sha256 = sha256Hex(claim);
  lines[1] = envelopeText(canonicalJson(statement), KEY);
  lines[2] = canonicalJson({ ...JSON.parse(lines[2]!), k: key, s: claim });
  const bytes = Buffer.from(lines.join("\n"));
  const [report] = await reportsOf(bytes);
  expect(report?.problem?.message).toMatch(/^the claim of the entries in lines 5 to 7 is/);
  expect(report?.problem).toMatchObject({ kind: "damaged", line: 5 });
  expect(secondCheck(bytes, [KEY.vkey])).toEqual(["damaged"]);
});

test("a bundle without a signature, or with that of an unknown key, is untrusted", async () => {
  const other = signingKeyOf(Buffer.alloc(32, 9), "edge7");
  const signed = Buffer.from(await textOf("kid", "full"));
  const unsigned = Buffer.from(await readingStore(runs, (store) => bundleText(store, "kid", "full", null)));
  expect((await reportsOf(signed, [other])).map(verdictOf)).toEqual(["untrusted"]);
  expect((await reportsOf(unsigned)).map(verdictOf)).toEqual(["untrusted"]);
  expect(secondCheck(signed, [other.vkey])).toEqual(["untrusted"]);
  expect(secondCheck(unsigned, [KEY.vkey])).toEqual(["untrusted"]);
});

test("the parts of a bundle are the evidence, the attempts and the counters that no journal has", async () => {
  const partsOf = async (id: string): Promise<readonly string[]> => {
    const [report] = await reportsOf(Buffer.from(await textOf(id, "full")));
    return (await Array.fromAsync(report!.parts())).map(({ part, text }) => `${part} ${text}`);
  };
  expect(await partsOf("stopped")).toEqual([expect.stringMatching(/^evidence \{.*UNKNOWN_TASK/)]);
  expect(await partsOf("sum")).toEqual([expect.stringMatching(/^attempts \{.*"outcome":"failed".*"step":"Task\(0\)"/)]);
  expect(await partsOf("prices")).toEqual(
    expect.arrayContaining([expect.stringMatching(/^uses \{"completed":1,"inputs":\[\{"edge":"rate".*"node":"asked"/)]),
  );
});

test("any value that a run can hold is in its bundle, byte for byte", async () => {
  const values = fc.sample(storable, { numRuns: 150, seed: 15 });
  using echoes = new StoreWithRuns([echo]);
  await echoes.start(
    ...values.map((input, index) => ({ id: `v${index}`, what: echo, input, until: "completed" as const })),
  );
  await readingStore(echoes, async (store) => {
    for (const index of values.keys()) {
      const record = await store.findRun(`v${index}`);
      const text = await bundleText(store, `v${index}`, "full");
      const [report] = await reportsOf(Buffer.from(text));
      expect(verdictOf(report!)).toBe("fine");
      expect(secondCheck(Buffer.from(text), [KEY.vkey])).toEqual(["fine"]);
      const entries = (await Array.fromAsync(report!.journal!.pages())).flat();
      expect(entries).toEqual(await store.readJournal(record!.run, 0));
    }
  });
});

test("a store with a changed byte in a row of the journal is not bundled, and the error names the run", async () => {
  using damaged = await new StoreWithRuns([kid]).start({ id: "kid", what: kid, input: 4, until: "completed" });
  using db = new DatabaseSync(damaged.url.slice("sqlite:".length));
  const rows = db.prepare("select seq, type, command, data from journal").all() as unknown as readonly JournalRow[];
  const found: string[] = [];
  for (const { seq, ...columns } of rows)
    for (const [column, value] of Object.entries(columns)) {
      const set = db.prepare(`update journal set ${column} = ? where seq = ?`);
      for (const [at, byte] of Buffer.from(value).entries()) {
        const changed = Buffer.from(value);
        changed[at] = byte ^ (1 << (at % 7));
        set.run(column === "data" ? changed : changed.toString(), seq);
        const error: unknown = await readingStore(damaged, (store) => bundleText(store, "kid", "full")).catch(
          (one) => one,
        );
        const isNamed =
          error instanceof RepriseError && error.code === "STORE_CORRUPT" && error.details?.["run"] === "kid";
        if (!isNamed) found.push(`byte ${at} of ${column} in entry ${seq}: ${String(error)}`);
      }
      set.run(value, seq);
    }
  expect(found).toEqual([]);
  expect(
    (await reportsOf(Buffer.from(await readingStore(damaged, (store) => bundleText(store, "kid", "full"))))).map(
      verdictOf,
    ),
  ).toEqual(["fine"]);
});
