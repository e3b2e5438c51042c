// Random requests, made from the OpenAPI document as a client of another language would read it: valid ones, and valid ones with a defect.
// No answer is 500, every refusal is a problem document, and a refused request has changed nothing.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "reprise";
import { createServer } from "reprise/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkJson, problem } from "../../src/contract/index.ts";
import { openExampleShop } from "./example-shop.ts";
import { StoreRows } from "./store-rows.ts";

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly minLength?: number;
}

interface Described {
  readonly operationId: string;
  readonly responses: { readonly default: { readonly content: object } };
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Schema;
    readonly example?: unknown;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
  };
}

const KNOWN = [
  "order-1042",
  "order-1041",
  "answer-7",
  "checkout",
  "payments",
  "nightly-report",
  "approval",
  "note",
  "words",
  "1",
];

function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueOf));
  switch (schema.type) {
    case "integer":
    case "number":
      return fc.integer({ min: schema.minimum ?? -5, max: Math.min(schema.maximum ?? 1_000, 1_000) });
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(valueOf(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case "object":
      return objectOf(schema);
    case "string":
      if (schema.format === "date-time") return fc.constantFrom("2026-11-01T00:00:00Z", "1970-01-01T00:00:00.000Z");
      if (schema.pattern?.startsWith("^\\d") === true) return fc.constantFrom("1 s", "5 minutes", "0 ms", "9 parsecs");
      return fc.oneof(
        fc.constantFrom(...KNOWN),
        fc.string({ unit: "binary", minLength: schema.minLength ?? 0, maxLength: 12 }),
      );
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: Schema): fc.Arbitrary<unknown> {
  if (typeof additionalProperties === "object")
    return fc.dictionary(fc.string(), valueOf(additionalProperties), { maxKeys: 2, noNullPrototype: true });
  const values = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, valueOf(one)]));
  return fc.record(values, { requiredKeys: required as string[], noNullPrototype: true });
}

/** What waits for a worker, or for another process. */
const SKIPPED = new Set(["sendUpdate", "followEvents", "readStream"]);

test("random requests are answered or refused as the document says, and a refused one has changed nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-requests-"));
  const path = join(folder, "shop.db");
  await (await openExampleShop({}, `sqlite:${path}`))[Symbol.asyncDispose]();
  // Without a worker nothing changes but by requests.
  await using client = await createClient({ store: `sqlite:${path}`, definitions: [], logger: false });
  const failures: unknown[] = [];
  const logger = {
    info: () => undefined,
    warn: () => undefined,
    error: (_text: string, data?: object) => void failures.push(data),
  };
  await using server = createServer(client, { limits: { requestsPerSecond: 1_000_000 }, logger });
  using rows = new StoreRows(path);
  const document = (await (await server.fetch(new Request("http://127.0.0.1/openapi.json"))).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  };
  const all = Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ template, method: method.toUpperCase(), described })),
  );
  const usable = all.filter(({ described }) => !SKIPPED.has(described.operationId));
  expect(usable.length).toBeGreaterThan(50);
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...usable).chain((one) => fc.tuple(fc.constant(one), requestOf(one))),
      async ([{ template, described }, { address, ...init }]) => {
        const before = rows.read();
        const response = await server.fetch(new Request(`http://127.0.0.1${address}`, init));
        const text = await response.text();
        seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
        expect(
          response.status,
          `${init.method} ${template} ${address} ${init.body ?? ""} ${text} ${String(failures.at(-1))}`,
        ).not.toBe(500);
        if (response.status < 400) return;
        const type = response.headers.get("content-type")?.split(";")[0] ?? "";
        expect(Object.keys(described.responses.default.content), text).toContain(type);
        if (type === "application/problem+json") expect(checkJson(problem, JSON.parse(text)), text).toEqual([]);
        expect(rows.read(), `${init.method} ${address} ${init.body ?? ""}`).toEqual(before);
      },
    ),
    { numRuns: Number(process.env["REPRISE_SEEDS"] ?? 600), seed: 17, endOnFailure: true },
  );
  // Both kinds were made, or the test shows nothing.
  expect(seen.get(200) ?? 0).toBeGreaterThan(50);
  expect((seen.get(400) ?? 0) + (seen.get(404) ?? 0)).toBeGreaterThan(50);
  rmSync(folder, { recursive: true });
});

interface Sent {
  readonly address: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

function requestOf({
  template,
  method,
  described,
}: {
  template: string;
  method: string;
  described: Described;
}): fc.Arbitrary<Sent> {
  const inPath = described.parameters.filter((one) => one.in === "path");
  const inQuery = described.parameters.filter((one) => one.in === "query" && one.name !== "wait");
  const [type, content] = Object.entries(described.requestBody?.content ?? {})[0] ?? [];
  const paths = fc.tuple(
    ...inPath.map(({ example }) =>
      fc.oneof(
        { weight: 3, arbitrary: fc.constant(typeof example === "string" ? example : "x") },
        valueOf({ type: "string", minLength: 1 }),
      ),
    ),
  );
  const query = fc.record(Object.fromEntries(inQuery.map(({ name, schema }) => [name, valueOf(schema)])), {
    requiredKeys: [],
    noNullPrototype: true,
  });
  const body =
    content === undefined
      ? fc.constant(undefined)
      : fc.oneof(
          { weight: 2, arbitrary: fc.constant(content.example) },
          { weight: 3, arbitrary: valueOf(content.schema) },
          fc.jsonValue(),
        );
  return fc.record({ paths, query, body }).map((made): Sent => {
    let at = 0;
    const filled = template.replaceAll(/\{\w+\}/g, () => encodeURIComponent(String(made.paths[at++]).toWellFormed()));
    const search = new URLSearchParams(
      Object.entries(made.query).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, String(one)]),
      ),
    ).toString();
    return {
      address: `${filled}${search === "" ? "" : `?${search}`}`,
      method,
      headers: {
        "x-reprise": "1",
        ...(made.body !== undefined && { "content-type": type === "*/*" ? "application/json" : type! }),
      },
      ...(made.body !== undefined && { body: JSON.stringify(made.body) }),
    };
  });
}
