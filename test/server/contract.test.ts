// The contract of the HTTP API, for every operation of the table: its example is true, its schema is checked, and nothing else changes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Server } from "reprise/server";
import { checkJson, problem, ROLES, type Operation } from "../../src/contract/index.ts";
import { OPERATIONS } from "../../src/server/operations.ts";
import { openExampleShop, type ExampleShop } from "./example-shop.ts";
import { StoreRows } from "./store-rows.ts";

const FORM = "application/x-www-form-urlencoded";
const ORIGIN = "http://127.0.0.1:7420";

export function requestOf(operation: Operation, changes: { body?: unknown; query?: string } = {}): Request {
  const { method, path, example, form } = operation;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(example.path?.[name] ?? "x"));
  const query = changes.query ?? queryOf(example.query as object | undefined);
  const body = "body" in changes ? changes.body : (example.body as unknown);
  return new Request(`${ORIGIN}${filled}${query}`, {
    method,
    headers: {
      "x-reprise": "1",
      ...(typeof operation.answer === "string" && { accept: operation.answer }),
      ...(body !== undefined && { "content-type": form === true ? FORM : "application/json" }),
    },
    ...(body !== undefined && {
      body: form === true ? new URLSearchParams(body as Record<string, string>).toString() : JSON.stringify(body),
    }),
  });
}

function queryOf(query: object = {}): string {
  const parts = Object.entries(query).flatMap(([name, value]: [string, unknown]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  return parts.length === 0 ? "" : `?${new URLSearchParams(parts).toString()}`;
}

const named = OPERATIONS.map(({ id, operation }) => [id, operation] as const);

describe("the table", () => {
  test("has a role, a summary, a schema and an example for every operation, and each request once", () => {
    expect(new Set(OPERATIONS.map(({ id }) => id)).size).toBe(OPERATIONS.length);
    expect(new Set(named.map(([, { method, path }]) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`)).size).toBe(
      OPERATIONS.length,
    );
    for (const [id, operation] of named) {
      expect([...ROLES, "public"], id).toContain(operation.role);
      expect(operation.summary, id).toMatch(/^[A-Z][^]*\.$/);
      expect(operation.group, id).toMatch(/^[A-Z]/);
      expect(operation.answer, id).not.toBeUndefined();
      if (operation.body !== undefined && operation.raw !== true)
        expect(checkJson(operation.body, operation.example.body ?? {}), id).toEqual([]);
      if (operation.query !== undefined)
        expect(checkJson(operation.query, operation.example.query ?? {}), id).toEqual([]);
      const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
      expect(Object.keys(operation.example.path ?? {}).sort(), id).toEqual(names.sort());
    }
  });
});

/** The examples in an order in which all are true: an answer to a promise ends its run. */
const inOrder = named.toSorted(([a], [b]) => Number(a === "settlePromise") - Number(b === "settlePromise"));

/** Examples whose path or body is a secret that this server did not make, or that need other code. */
const REFUSED: Readonly<Record<string, number>> = {
  signIn: 401,
  showApprovalLink: 404,
  answerApprovalLink: 404,
  migrateRun: 409,
  receiveWebhook: 404,
  receiveCallback: 401,
};

describe("a server", () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-contract-"));
  const path = join(folder, "shop.db");
  let shop: ExampleShop;
  let server: Server;
  let rows: StoreRows;

  beforeAll(async () => {
    shop = await openExampleShop({}, `sqlite:${path}`);
    ({ server } = shop);
    rows = new StoreRows(path);
  });
  afterAll(async () => {
    rows[Symbol.dispose]();
    await shop[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  async function refusal(request: Request): Promise<{ status: number; code: string; issues?: readonly unknown[] }> {
    const response = await server.fetch(request);
    const text = await response.text();
    expect(response.headers.get("content-type"), text).toBe("application/problem+json");
    const body = JSON.parse(text) as { status: number; code: string };
    expect(checkJson(problem, body), text).toEqual([]);
    expect(body.status).toBe(response.status);
    return body;
  }

  test.each(named)(
    "refuses a query and a body of %s that its schema does not have, and writes nothing",
    async (_id, operation) => {
      const before = rows.read();
      if (operation.form !== true) {
        expect(await refusal(requestOf(operation, { query: "?nothing-of-this=1" }))).toMatchObject({ status: 400 });
        if (operation.body !== undefined && operation.raw !== true) {
          for (const body of [{ ...(operation.example.body as object), "nothing-of-this": 1 }, ["a list"], null])
            expect(await refusal(requestOf(operation, { body }))).toMatchObject({
              status: 400,
              issues: expect.any(Array) as [],
            });
          const text = requestOf(operation, { body: operation.example.body ?? {} });
          text.headers.set("content-type", "text/plain");
          expect(await refusal(text)).toMatchObject({ status: 415 });
        }
      }
      expect(rows.read()).toEqual(before);
    },
  );

  test.each(inOrder)("answers the example of %s as its schema says", async (id, operation) => {
    const request = requestOf(operation);
    const reading = new AbortController();
    const response = await server.fetch(new Request(request, { signal: reading.signal }));
    const expected = REFUSED[id] ?? operation.status ?? 200;
    if (typeof operation.answer === "string" && response.status === 200) {
      expect(response.headers.get("content-type")).toMatch(operation.answer);
      reading.abort();
      await response.body?.cancel();
      return;
    }
    const text = await response.text();
    expect(response.status, text).toBe(expected);
    if (expected >= 400 || operation.answer === null || typeof operation.answer === "string") return;
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(checkJson(operation.answer, JSON.parse(text)), text).toEqual([]);
  });

  test("every operation is in the OpenAPI document, with its role and its schemas", async () => {
    const document = (await (await server.fetch(new Request(`${ORIGIN}/openapi.json`))).json()) as {
      readonly paths: Record<string, Record<string, { operationId: string; "x-role": string; responses: object }>>;
    };
    for (const [id, { path: template, method, role }] of named)
      expect(document.paths[template]?.[method.toLowerCase()]).toMatchObject({ operationId: id, "x-role": role });
  });

  test("an unknown path is 404, another method 405 with Allow, an answer that is not accepted 406, a long body 413", async () => {
    expect(await refusal(new Request(`${ORIGIN}/v1/nothing`))).toMatchObject({ status: 404 });
    const put = await server.fetch(new Request(`${ORIGIN}/v1/site`, { method: "PUT" }));
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET"]);
    const accept = { headers: { accept: "application/xml" } };
    expect(await refusal(new Request(`${ORIGIN}/v1/site`, accept))).toMatchObject({ status: 406 });
    const long = { action: "cancel", filter: { ids: ["x".repeat(1_100_000)] } };
    const bulk = OPERATIONS.find(({ id }) => id === "bulkRuns")!.operation;
    expect(await refusal(requestOf(bulk, { body: long }))).toMatchObject({ status: 413, code: "LIMIT_EXCEEDED" });
    expect((await server.fetch(new Request(`${ORIGIN}/v1/site`, { method: "HEAD" }))).status).toBe(200);
  });

  test("an answer that did not change is 304 for its ETag", async () => {
    const url = `${ORIGIN}/v1/runs/order-1041`;
    const first = await server.fetch(new Request(url));
    const etag = first.headers.get("etag")!;
    const again = await server.fetch(new Request(url, { headers: { "if-none-match": etag } }));
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });
});
