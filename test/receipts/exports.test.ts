// Exports: what `reprise export` writes is valid in each format, for every kind of run.

import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { aesGcm } from "reprise";
import { createTestEngine } from "reprise/testing";
import type { RunRecord, Store } from "../../src/kernel/index.ts";
import { decodeData } from "../../src/kernel/index.ts";
import {
  blindKey,
  exportOpenLineage,
  exportProv,
  exportSlsa,
  Provenance,
  readExported,
  readProvenance,
  type ExportedRun,
} from "../../src/receipts/index.ts";
import { storeAround } from "../engine/world.ts";
import { PROGRAMS } from "./programs.ts";
import { Timing } from "./timing.ts";

const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  strictRequired: false,
  strictTypes: false,
  allowUnionTypes: true,
  formats: {
    uri: /^[a-z][a-z0-9+.-]*:[^\s]+$/i,
    "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
    uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  },
});
const schemaOf = (name: string): ValidateFunction =>
  ajv.compile(JSON.parse(readFileSync(new URL(`schemas/${name}.json`, import.meta.url), "utf8")) as object);

const CONTEXT = { origin: "edge7/56475aa75463474c", engine: "reprise/0.2.0" };
const FORMATS = {
  prov: { check: schemaOf("prov-json"), write: (run: ExportedRun): Iterable<object> => [exportProv(run, CONTEXT)] },
  slsa: { check: schemaOf("slsa-provenance-v1"), write: (run: ExportedRun) => exportSlsa(run, CONTEXT) },
  openlineage: {
    check: schemaOf("openlineage-run-event"),
    write: (run: ExportedRun) => exportOpenLineage(run, CONTEXT),
  },
} as const;
type Format = keyof typeof FORMATS;

const codec = aesGcm({ keys: { one: Buffer.alloc(32, 7).toString("base64") }, current: "one" });

/** Calls `work` with every run of a program's family. */
async function withRuns(
  kind: keyof typeof PROGRAMS,
  isEncrypted: boolean,
  work: (store: Store, records: readonly RunRecord[], ids: readonly string[]) => Promise<void>,
): Promise<void> {
  const timing = new Timing(1);
  const program = PROGRAMS[kind](timing);
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({
    definitions: program.definitions as never[],
    store: source,
    outbox: { mail: () => {} },
    ...(isEncrypted && { codec }),
  });
  const ids = await program.drive(engine as never);
  const store = source.store as Store;
  await work(store, await store.listRuns({ limit: 1_000 }), ids);
}

function documents(run: ExportedRun, format: Format): readonly Record<string, any>[] {
  return [...FORMATS[format].write(run)] as Record<string, any>[];
}

function expectValid(format: Format, document: object): void {
  const { check } = FORMATS[format];
  check(document);
  expect(check.errors ?? []).toEqual([]);
}

test.each(["workflow", "graph", "flow"] as const)("every run of a %s is valid in every format", async (kind) => {
  await withRuns(kind, false, async (store, records) => {
    expect(records.length).toBeGreaterThan(1);
    for (const record of records) {
      const run = await readExported(store, record);
      for (const format of ["prov", "slsa", "openlineage"] as const) {
        const written = documents(run, format);
        for (const document of written) expectValid(format, document);
        expect(documents(await readExported(store, record), format)).toEqual(written);
      }
    }
  });
});

test.each(["workflow", "graph", "flow"] as const)(
  "an export of a %s from a store with a codec has no digest of a payload, and no key of a plain value",
  async (kind) => {
    await withRuns(kind, true, async (store, records) => {
      for (const record of records) {
        const [first] = await store.readJournal(record.run, 0, 1);
        const { salt } = decodeData("RunStarted", first!.data);
        const run = await readExported(store, record, blindKey(Buffer.from(salt!, "hex")));
        const plain = await readExported(store, record);
        const secrets = [...plain.checksums.keys(), ...plain.checksums.values()];
        expect(secrets.length).toBeGreaterThan(0);
        for (const format of ["prov", "slsa", "openlineage"] as const) {
          const written = documents(run, format);
          for (const document of written) expectValid(format, document);
          const text = JSON.stringify(written);
          expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
        }
      }
    });
  },
);

test("why of the output of a run leads through its steps to its start; uses of the input leads to its end", async () => {
  await withRuns("workflow", false, async (store, _records, [id]) => {
    const provenance = new Provenance(await readProvenance(store, [id!]));
    const newest = await readExported(store, (await store.findRun(id!))!);
    const back = provenance.why(newest.output!, { limit: 1_000 });
    expect(back.hops[0]).toMatchObject({ run: id, part: "end", depth: 1, relation: "generated" });
    const reached = new Set(back.hops.map(({ run, part }) => `${run} ${part}`));
    expect(reached).toContain(`${id} start`);
    // The end of a child informed the step that waited for it.
    expect([...reached].some((at) => !at.startsWith(`${id} `) && at.endsWith(" end"))).toBe(true);
    const [first] = (await readProvenance(store, [id!])).filter((run) => run.id === id);
    const forward = provenance.uses(first!.input!, { limit: 1_000 });
    expect(
      forward.hops.some(
        ({ run, generation, part }) => run === id && generation === newest.record.generation && part === "end",
      ),
    ).toBe(true);
  });
});

test("the schemas refuse what the specifications refuse", async () => {
  await withRuns("workflow", false, async (store, [record]) => {
    const run = await readExported(store, record!);
    const broken: readonly [Format, (document: Record<string, any>) => void][] = [
      [
        "prov",
        (one) =>
          delete Object.values<Record<string, any>>(one["used"] ?? one["wasGeneratedBy"])[0]![
            one["used"] ? "prov:activity" : "prov:entity"
          ],
      ],
      ["prov", (one) => (one["activity"][Object.keys(one["activity"])[0]!]["prov:startTime"] = "yesterday")],
      ["prov", (one) => (one["entities"] = {})],
      ["slsa", (one) => (one["subject"] = [])],
      ["slsa", (one) => delete one["subject"][0].digest],
      ["slsa", (one) => (one["_type"] = "https://in-toto.io/Statement/v0.1")],
      ["slsa", (one) => delete one["predicate"].runDetails.builder.id],
      ["slsa", (one) => delete one["predicate"].buildDefinition.externalParameters],
      ["openlineage", (one) => (one["run"].runId = "order-7")],
      ["openlineage", (one) => (one["eventType"] = "DONE")],
      ["openlineage", (one) => delete one["job"].namespace],
      ["openlineage", (one) => delete one["schemaURL"]],
    ];
    for (const [format, breakIt] of broken) {
      const [document] = structuredClone(documents(run, format));
      breakIt(document!);
      expect([format, String(breakIt), FORMATS[format].check(document)]).toEqual([format, String(breakIt), false]);
    }
    const child = documents(run, "openlineage").find(({ run: own }) => own.facets !== undefined);
    delete child?.["run"].facets.parent.run;
    expect(child === undefined || FORMATS.openlineage.check(child)).toBe(false);
  });
});
