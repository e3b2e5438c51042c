// Damage: nothing that happened to a bundle after it was written is accepted, and both checkers say the same about it.

import { afterAll, beforeAll, expect, test } from "vitest";
import { RepriseError, workflow } from "reprise";
import { envelopeText } from "../../src/receipts/dsse.ts";
import type { BundleForm } from "../../src/receipts/index.ts";
import { bundleText, FORMS, KEY, readingStore, reportsOf, runsOfAllKinds, verdictOf } from "./bundled.ts";
import { secondCheck, type Verdict } from "./second-checker.ts";
import { StoreWithRuns } from "../cli/store-with-runs.ts";

let runs: StoreWithRuns;
beforeAll(async () => {
  runs = await runsOfAllKinds();
});
afterAll(() => runs[Symbol.dispose]());

function bundleOf(id: string, form: BundleForm): Promise<string> {
  return readingStore(runs, (store) => bundleText(store, id, form));
}

/** The first verdict that is not `fine`, and the line that it names. */
async function judge(bytes: Uint8Array): Promise<{ readonly verdict: Verdict; readonly line: number | undefined }> {
  try {
    const reports = await reportsOf(bytes);
    const bad = reports.find((report) => verdictOf(report) !== "fine");
    return { verdict: bad === undefined ? "fine" : verdictOf(bad), line: bad?.problem?.line };
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== "BUNDLE_DAMAGED") throw error;
    return { verdict: "damaged", line: Number(error.details?.["line"]) };
  }
}

function secondVerdict(bytes: Uint8Array): Verdict {
  return secondCheck(bytes, [KEY.vkey]).find((verdict) => verdict !== "fine") ?? "fine";
}

interface Damage {
  readonly what: string;
  readonly bytes: Uint8Array;
  /** The line that was changed; undefined: any line may be named. */
  readonly line?: number;
}

/** Damage that was accepted, that no line is named for, or about which the checkers disagree. */
async function misjudged(damages: Iterable<Damage>): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { what, bytes, line } of damages) {
    const { verdict, line: named } = await judge(bytes);
    const second = secondVerdict(bytes);
    // The signature covers line 2 of a section, and what is signed by another key names no line.
    const isNamed = named !== undefined || verdict === "untrusted" || line === 2;
    if (verdict === "fine" || verdict !== second || !isNamed)
      found.push(`${what}: ${verdict}, ${second}, line ${String(named)}`);
  }
  return found;
}

function* flips(text: string, bitsOf: (position: number) => readonly number[]): Generator<Damage> {
  const bytes = Buffer.from(text);
  let line = 1;
  for (let position = 0; position < bytes.length; position += 1) {
    for (const bit of bitsOf(position)) {
      const flipped = Buffer.from(bytes);
      flipped[position]! ^= 1 << bit;
      yield { what: `bit ${bit} of byte ${position} in line ${line}`, bytes: flipped, line };
    }
    if (bytes[position] === 10) line += 1;
  }
}

const KINDS = ["kid", "sum", "words", "prices", "stopped"].flatMap((id) => FORMS.map((form) => [id, form] as const));

test.each(KINDS)("a bundle of %s (%s) with one changed byte is not accepted", async (id, form) => {
  const text = await bundleOf(id, form);
  // Every byte, of longer bundles without payloads every seventh. Bits 0 to 7 in turn: other letters and digits, and no UTF-8.
  const step = form === "full" || id === "kid" ? 1 : 7;
  const bitsOf = (position: number): readonly number[] =>
    position % step === 0 ? [Math.floor(position / step) % 8] : [];
  expect(await misjudged(flips(text, bitsOf))).toEqual([]);
});

test.each(KINDS)("a bundle of %s (%s) with a line removed, doubled or swapped is not accepted", async (id, form) => {
  const lines = (await bundleOf(id, form)).trimEnd().split("\n");
  const joined = (changed: readonly string[]): Buffer => Buffer.from(`${changed.join("\n")}\n`);
  const damages = lines.flatMap((line, at): Damage[] => [
    { what: `without line ${at + 1}`, bytes: joined(lines.toSpliced(at, 1)) },
    { what: `line ${at + 1} twice`, bytes: joined(lines.toSpliced(at, 0, line)) },
    ...(at === 0
      ? []
      : [
          {
            what: `lines ${at} and ${at + 1} swapped`,
            bytes: joined(lines.toSpliced(at - 1, 2, line, lines[at - 1]!)),
          },
        ]),
  ]);
  expect(await misjudged(damages)).toEqual([]);
});

test.each(KINDS)("a bundle of %s (%s) that was cut anywhere is incomplete", async (id, form) => {
  const bytes = Buffer.from(await bundleOf(id, form));
  const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at] : []));
  const cuts = new Set([
    ...ends.flatMap((end) => [end, end + 1]),
    ...Array.from({ length: 400 }, (_, at) => ends[1]! + at * 3),
  ]);
  cuts.delete(bytes.length);
  const found: string[] = [];
  for (const cut of cuts) {
    if (cut >= bytes.length || cut <= ends[0]!) continue;
    const { verdict } = await judge(bytes.subarray(0, cut));
    const second = secondVerdict(bytes.subarray(0, cut));
    if (verdict !== "incomplete" || second !== "incomplete") found.push(`cut after ${cut}: ${verdict}, ${second}`);
  }
  expect(found).toEqual([]);
});

test("a bundle of a family in which two sections exchange a line is not accepted", async () => {
  const [kid, sum] = [await bundleOf("kid", "full"), await bundleOf("sum", "full")].map((text) =>
    text.trimEnd().split("\n"),
  );
  const found: string[] = [];
  for (let at = 0; at < 6; at += 1) {
    const lines = [...kid!.toSpliced(at, 1, sum![at]!), ...sum!.toSpliced(at, 1, kid![at]!)];
    const { verdict } = await judge(Buffer.from(`${lines.join("\n")}\n`));
    if (verdict === "fine") found.push(`line ${at + 1}`);
  }
  expect(found).toEqual([]);
});

test.each(FORMS)("a second text of a line (%s) is not accepted", async (form) => {
  const lines = (await bundleOf("sum", form)).trimEnd().split("\n");
  const joined = (changed: readonly string[]): Buffer => Buffer.from(`${changed.join("\n")}\n`);
  const damages: Damage[] = [
    {
      what: "a member of the header that no digest covers",
      bytes: joined(lines.with(0, lines[0]!.replace(',"reprise":', ',"note":"x","reprise":'))),
    },
  ];
  for (const [at, line] of lines.entries()) {
    const [entry, more] = line.startsWith("[")
      ? [JSON.parse(line) as unknown[], (JSON.parse(line) as unknown[])[6]]
      : [];
    if (entry === undefined || more === undefined) continue;
    const reversed = Object.fromEntries(Object.entries(more as object).toReversed());
    damages.push({
      what: `other order in line ${at + 1}`,
      bytes: joined(lines.with(at, JSON.stringify(entry.with(6, reversed)))),
    });
  }
  expect(damages.length).toBe(form === "full" ? 2 : 1);
  expect(await misjudged(damages)).toEqual([]);
});

test.each(FORMS)("a text that only looks like U+FFFD in UTF-8 (%s) is not accepted", async (form) => {
  const odd = workflow("odd", async (_ctx, value: string) => value);
  using own = await new StoreWithRuns([odd]).start({ id: "\ufffd", what: odd, input: "\ufffd", until: "completed" });
  const lines = (await readingStore(own, (store) => bundleText(store, "\ufffd", form))).trimEnd().split("\n");
  const joined = (changed: readonly string[]): Buffer => Buffer.from(`${changed.join("\n")}\n`);
  const envelope = JSON.parse(lines[1]!) as { payload: string };
  const text = Buffer.from(envelope.payload, "base64").toString("latin1");
  const payload = Buffer.from(text.replace(Buffer.from("\ufffd").toString("latin1"), "\xff"), "latin1").toString(
    "base64",
  );
  expect(payload).not.toBe(envelope.payload);
  const damages: Damage[] = [
    { what: "bytes of the statement", bytes: joined(lines.with(1, JSON.stringify({ ...envelope, payload }))), line: 2 },
    ...(form === "full"
      ? [
          {
            what: "a lone surrogate",
            bytes: joined(lines.map((line) => line.replace(/^\[.*/, (all) => all.replaceAll("\ufffd", "\\ud800")))),
          },
        ]
      : []),
  ];
  expect(await misjudged(damages)).toEqual([]);
});

test.each([
  ["deep", `"parent":{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
  ["no text", '"zzz":"\\ud800"'],
  ["not canonical", '"zzz":1e2'],
])("a signed statement that is %s ends with a verdict", async (_what, member) => {
  for (const form of FORMS) {
    const lines = (await bundleOf("kid", form)).split("\n");
    const { payload } = JSON.parse(lines[1]!) as { payload: string };
    const statement = Buffer.from(payload, "base64").toString().replace('"predicate":{', `"predicate":{${member},`);
    const bytes = Buffer.from(lines.with(1, envelopeText(statement, KEY)).join("\n"));
    expect(await judge(bytes)).toEqual({ verdict: "damaged", line: 2 });
  }
});
