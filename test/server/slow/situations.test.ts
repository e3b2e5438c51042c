// The situations of the dashboard, made by real workers: what the API says about each of them, and the examples of every operation.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "reprise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkJson } from "../../../src/contract/index.ts";
import { OPERATIONS } from "../../../src/server/operations.ts";
import { openApi, type Api } from "../api.ts";
import { createSituations, type Situations } from "../situations.ts";

let folder: string;
let situations: Situations;
let api: Api;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-situations-"));
  situations = await createSituations(folder);
  api = openApi(situations.client);
}, 120_000);

afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await situations?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("a run that lost its worker shows the lost execution, the gap of its holders and the takeover", async () => {
  const { body } = await api.get("/v1/runs/order-1042/timeline");
  const pack = body.rows.find((row: { name: string }) => row.name === "pack");
  expect(pack.spans.map((span: { kind: string }) => span.kind)).toEqual(["lost", "queue", "work"]);
  const [lost, , work] = pack.spans;
  expect(work).toMatchObject({ execution: 2, attempt: 1 });
  expect(lost.worker).not.toBe(work.worker);
  expect(body.holdings).toEqual([
    expect.objectContaining({ worker: lost.worker, lost: true }),
    expect.objectContaining({ worker: work.worker, lost: false }),
  ]);
  expect(Date.parse(body.holdings[1].from)).toBeGreaterThan(Date.parse(body.holdings[0].to));
  expect(body.takeovers).toEqual([
    expect.objectContaining({ from: lost.worker, to: work.worker, lostSteps: ["Operation(0)"], replayedEntries: 5 }),
  ]);
  const { lostAt, takenAt } = body.takeovers[0];
  // The lease is one second.
  expect(Date.parse(takenAt) - Date.parse(lostAt)).toBeGreaterThan(900);
  const charge = body.rows.find((row: { name: string }) => row.name === "charge");
  expect(charge.spans.map((span: { kind: string }) => span.kind)).toEqual(["queue", "failed", "backoff", "work"]);
  const now = await api.get("/v1/reasons?run=order-1042");
  expect(now.body.items[0]).toMatchObject({ attempts: ["lost", "completed"], reason: "promise" });
});

test("work that no live worker can claim says what is missing", async () => {
  const { body } = await api.get("/v1/pending");
  const [render] = body.items.filter(({ name }: { name: string }) => name === "render");
  expect(render).toMatchObject({ kind: "task", count: 1 });
  expect(render.reasons[0]).toMatchObject({ reason: "no_worker", text: expect.stringContaining("gpu") as string });
});

test("a determinism violation has the difference, the entries around it and the line of code", async () => {
  const { body } = await api.post("/v1/runs/invoice-9/verify");
  expect(body).toMatchObject({ status: "different", agreed: 1, chain: { intact: true }, gapFree: true });
  expect(body.differences[0]).toMatchObject({ where: "Operation(0)", expected: "book", actual: "number" });
  expect(body.around.map((entry: { seq: number }) => entry.seq)).toContain(2);
  expect(body.differences[0].place).toMatch(/situation-definitions\.ts:\d+$/);
  const { first, lines, line } = body.source;
  expect(lines[line - first]).toContain("ctx.run(first");
});

test("without the code, runs are read, controlled and answered, and what needs code names the command", async () => {
  await using bare = await createClient({ store: situations.store, definitions: [], logger: false });
  await using bareApi = openApi(bare);
  const { body: run } = await bareApi.get("/v1/runs/order-1039");
  expect(run).toMatchObject({ registered: false, status: "waiting", input: { order: 1039 } });
  expect((await bareApi.get("/v1/runs/order-1039/timeline")).body.rows.length).toBeGreaterThan(3);
  expect((await bareApi.post("/v1/runs/order-1039/pause")).body.status).toBe("paused");
  expect((await bareApi.post("/v1/runs/order-1039/resume")).status).toBe(200);
  const refused = await bareApi.post("/v1/runs/order-1039/verify");
  expect(refused).toMatchObject({ status: 409, body: { code: "UNKNOWN_DEFINITION" } });
  expect(refused.body.hint).toBe("reprise verify order-1039 <file>");
  const unknown = await bareApi.post("/v1/runs/order-1039/promises/aproval", { value: { approved: true } });
  expect(unknown).toMatchObject({ status: 404, body: { code: "UNKNOWN_PORT" } });
  const settled = await bareApi.post("/v1/runs/order-1039/promises/approval", { value: { approved: true }, by: "ann" });
  expect(settled.status).toBe(200);
  const { body } = await bareApi.get("/v1/runs/order-1039/result?wait=20");
  expect(body).toMatchObject({ status: "completed", output: { approved: true } });
  const { body: history } = await bareApi.get("/v1/promises/history");
  expect(history.items).toContainEqual(expect.objectContaining({ run: "order-1039", outcome: "resolved", by: "ann" }));
});

test("the example of every operation about runs is true: the request is accepted, and the answer matches its schema", async () => {
  const groups = [
    "Site",
    "Definitions",
    "Runs",
    "Time travel",
    "Messages",
    "Verify",
    "Promises",
    "Queues",
    "Schedules",
    "Control",
  ];
  const failures: string[] = [];
  let sent = 0;
  // The answer of the promise ends order-1042, which other examples are about.
  const last = (id: string): number => Number(id === "settlePromise");
  for (const { id, operation } of OPERATIONS.toSorted((a, b) => last(a.id) - last(b.id))) {
    const { example, method, role, answer } = operation;
    // A second version of checkout is not deployed, and streams are tested apart.
    if (
      !groups.includes(operation.group) ||
      role === "public" ||
      id === "migrateRun" ||
      operation.path.includes("streams")
    )
      continue;
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(example.path?.[name] ?? ""),
    );
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries((example.query ?? {}) as Record<string, unknown>))
      for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
    const target = `${path}${query.size > 0 ? `?${query.toString()}` : ""}`;
    const response = await (method === "GET"
      ? api.get(target)
      : method === "DELETE"
        ? api.delete(target)
        : api.post(target, example.body));
    sent += 1;
    if (response.status >= 400) failures.push(`${id}: ${response.status} ${JSON.stringify(response.body)}`);
    else if (typeof answer === "object" && answer !== null)
      failures.push(...checkJson(answer, response.body).map(({ path: at, message }) => `${id}: ${at}: ${message}`));
  }
  expect(failures).toEqual([]);
  expect(sent).toBeGreaterThan(50);
});
