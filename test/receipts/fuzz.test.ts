// Fuzz: whatever a file contains, a check ends with a report or with an error of this package, and with little memory.

import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { RepriseError } from "reprise";
import { expect, test } from "vitest";
import { checkBundle, MAX_LINE_BYTES } from "../../src/receipts/index.ts";
import { finished, startNode, TemporaryFolder } from "../cli/cli-process.ts";
import { bundleText, inputOf, KEY, readingStore, reportsOf, runsOfAllKinds, verdictOf } from "./bundled.ts";
import { secondCheck } from "./second-checker.ts";

async function checked(bytes: Uint8Array): Promise<string> {
  try {
    const reports = await reportsOf(bytes);
    return reports.map(verdictOf).find((verdict) => verdict !== "fine") ?? "fine";
  } catch (error) {
    if (error instanceof RepriseError && error.code === "BUNDLE_DAMAGED") return "damaged";
    throw error;
  }
}

/** Text that parsers stumble over. */
const ODD = fc.constantFrom(
  "[".repeat(100_000),
  '{"a":'.repeat(50_000),
  `{"reprise":"bundle/1","form":"full","run":${"[".repeat(10_000)}${"]".repeat(10_000)}}`,
  "1e999999",
  "-0",
  '{"seq":9007199254740993}',
  '[1e308,"RunStarted","",0,null,"{}"]',
  '[1,"RunStarted","",8640000000000001,null,"{}"]',
  '[1,"","",0,null,"{}"]',
  '{"__proto__":{"k":1}}',
  '{"k":"","s":"","t":""}',
  '{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}',
  '{"payload":"bnVsbA==","payloadType":"application/vnd.in-toto+json","signatures":[]}',
  '{"payload":"","payloadType":"","signatures":[{"keyid":"","sig":""}]}',
  '{"form":"blind","reprise":"bundle/1","run":{}}',
  "\\0",
  "\\ud800",
  "\\u2028",
  "\\ufeff",
  "",
);

test("mutated bundles end with a verdict that is not fine, or are unchanged", async () => {
  using runs = await runsOfAllKinds();
  const texts = await readingStore(runs, async (store) =>
    Promise.all(["sum", "words", "prices", "pages", "stopped"].map((id) => bundleText(store, id, "full"))),
  );
  const originals = texts.map((text) => Buffer.from(text));
  const edit = fc.record({
    at: fc.nat(),
    remove: fc.nat(60),
    insert: fc.oneof(fc.uint8Array({ maxLength: 12 }), ODD.map(Buffer.from), fc.json().map(Buffer.from)),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...originals),
      fc.array(edit, { minLength: 1, maxLength: 4 }),
      async (original, edits) => {
        let bytes: Buffer = original;
        for (const { at, remove, insert } of edits) {
          const place = at % (bytes.length + 1);
          bytes = Buffer.concat([bytes.subarray(0, place), insert, bytes.subarray(place + remove)]);
        }
        const verdict = await checked(bytes);
        expect(secondCheck(bytes, [KEY.vkey]).every((one) => one === "fine")).toBe(verdict === "fine");
        expect(verdict === "fine").toBe(bytes.equals(original));
      },
    ),
    { numRuns: 1_500, seed: 15 },
  );
});

test("lines of any content end with a verdict", async () => {
  const line = fc.oneof(ODD, fc.json(), fc.string({ unit: "binary" }));
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 6 }), async (lines) => {
      expect(await checked(Buffer.from(`${lines.join("\n")}\n`))).not.toBe("fine");
    }),
    { numRuns: 1_000, seed: 15 },
  );
});

test("a statement of any shape ends with a verdict", async () => {
  using runs = await runsOfAllKinds();
  const text = await readingStore(runs, (store) => bundleText(store, "sum", "full"));
  const lines = text.split("\n");
  const { payload } = JSON.parse(lines[1]!) as { payload: string };
  const statement = JSON.parse(Buffer.from(payload, "base64").toString()) as { predicate: Record<string, unknown> };
  const names = Object.keys(statement.predicate);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names, "forked", "previous", "parent"), fc.jsonValue(), async (name, value) => {
      const changed = { ...statement, predicate: { ...statement.predicate, [name]: value } };
      const envelope = { ...JSON.parse(lines[1]!), payload: Buffer.from(JSON.stringify(changed)).toString("base64") };
      const bytes = Buffer.from(lines.with(1, JSON.stringify(envelope)).join("\n"));
      expect(await checked(bytes)).not.toBe("fine");
    }),
    { numRuns: 1_000, seed: 15 },
  );
});

test("a line without an end is refused at the limit, not read to the end", async () => {
  let given = 0;
  const endless = {
    async *read() {
      const chunk = Buffer.alloc(1024 * 1024, "a");
      for (; given < 10 * MAX_LINE_BYTES; given += chunk.length) yield chunk;
    },
  };
  await expect(Array.fromAsync(checkBundle(endless, []))).rejects.toMatchObject({ code: "BUNDLE_DAMAGED" });
  expect(given).toBeLessThanOrEqual(MAX_LINE_BYTES + 1024 * 1024);
});

test("a bundle is read alike in chunks of any size", async () => {
  using runs = await runsOfAllKinds();
  const bytes = Buffer.from(await readingStore(runs, (store) => bundleText(store, "sum", "full")));
  for (const size of [1, 2, 7, 1_000_000]) {
    const [report] = await Array.fromAsync(checkBundle(inputOf(bytes, size), [KEY]));
    expect(verdictOf(report!)).toBe("fine");
  }
});

test("a bundle of 100,000 entries is written and checked in a heap of 40 MB", async () => {
  using folder = new TemporaryFolder();
  const script = fileURLToPath(new URL("large-bundle.ts", import.meta.url));
  const flags = ["--max-old-space-size=40", "--max-semi-space-size=4"];
  const { code, stdout, stderr } = await finished(startNode([...flags, script, folder.file("large.jsonl"), "100000"]));
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({ problem: null, signature: "trusted", read: 100_000 });
});
