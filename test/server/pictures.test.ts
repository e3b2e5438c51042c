// Pictures and timelines over HTTP: the edges that a run took, earlier steps, forks, retries, and what the server refuses.

import {
  append,
  createClient,
  createEngine,
  FatalError,
  flow,
  goto,
  graph,
  last,
  START,
  task,
  typed,
  workflow,
  type Engine,
} from "reprise";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunPicture, TimelineRow } from "../../src/contract/index.ts";
import { openApi, type Api } from "./api.ts";

const research = graph("research", { state: { round: last(0), found: append<string>() } })
  .node("plan", async (_ctx, { round }) => ({ round: round + 1 }))
  .node("web", async () => ({ found: ["page"] }))
  .node("library", async () => ({ found: ["book"] }))
  .node("write", async (_ctx, { round }) => (round < 2 ? goto("plan") : {}))
  .edge(START, "plan")
  .edge("plan", ["web", "library"])
  .join(["web", "library"], "write");

let isBroken = true;
const charge = task("charge", { retry: { maxAttempts: 2, baseDelay: 1 } }, () => {
  if (isBroken) throw new FatalError("the bank is closed");
  return "paid";
});
const order = workflow("order", async (ctx) => {
  await ctx.run("reserve", () => 1);
  return ctx.task(charge, undefined);
});
const bill = flow("bill", { input: typed<number>() })
  .action("priced", ["input"], (_ctx, { input }) => input * 2)
  .action("charged", ["priced"], () => {
    if (isBroken) throw new FatalError("the bank is closed");
    return "paid";
  })
  .inline("thanks", ["charged"], ({ charged }) => `thanks, ${charged}`)
  .output(["thanks"], ({ thanks }) => thanks);
const checked = graph("checked", { state: { done: append<string>() } })
  .node("look", async () => ({ done: ["look"] }))
  .node("pay", async () => {
    if (isBroken) throw new FatalError("the bank is closed");
    return { done: ["pay"] };
  })
  .edge(START, ["look", "pay"]);

const folder = mkdtempSync(join(tmpdir(), "reprise-"));
const store = `sqlite:${join(folder, "a.db")}`;
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
let engine: Engine<any>;
let api: Api;

beforeAll(async () => {
  engine = await createEngine({ store, definitions: [research, order, charge, bill, checked], logger: SILENT });
  api = openApi(engine);
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function drawn(id: string, query = ""): Promise<RunPicture> {
  const { status, body } = await api.get(`/v1/runs/${id}/picture${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as RunPicture;
}
const states = ({ nodes }: RunPicture): Record<string, string> =>
  Object.fromEntries(nodes.map(({ id, state }) => [id, state]));
const taken = ({ edges }: RunPicture): string[] =>
  edges.map(({ from = "START", to = "END", kind, taken: times }) => `${from} ${kind} ${to} ${times}`);

describe("a graph", () => {
  test("counts the edges that it took, also into a join, and targets of goto are edges", async () => {
    const run = await engine.start(research, {}, { id: "research-1" });
    await run.result();
    const picture = await drawn("research-1");
    expect(taken(picture)).toEqual([
      "START always plan 1",
      "plan always web 2",
      "plan always library 2",
      "web always write 2",
      "library always write 2",
      "write goto plan 1",
    ]);
    expect(picture).toMatchObject({ status: "completed", step: 6, started: true, ended: true });
    expect(picture.nodes.find(({ id }) => id === "write")).toMatchObject({ runs: 2, active: 0, step: 6, kind: "join" });
  });

  test("is drawn as it was after a step, from that step and those before it", async () => {
    const earlier = await drawn("research-1", "?step=2");
    expect(states(earlier)).toEqual({ plan: "completed", web: "completed", library: "completed", write: "idle" });
    expect(taken(earlier).slice(0, 3)).toEqual(["START always plan 1", "plan always web 1", "plan always library 1"]);
    expect(earlier.step).toBe(2);
    expect((await api.get("/v1/runs/research-1/picture?step=99")).body).toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
  });

  test("that is a fork has the steps of its origin", async () => {
    const fork = await engine.get(research, "research-1").fork({ step: 3, id: "research-2" });
    await fork.result();
    expect(taken(await drawn("research-2"))).toEqual(taken(await drawn("research-1")));
    expect(states(await drawn("research-2", "?step=1"))).toMatchObject({ plan: "completed", web: "idle" });
  });
});

describe("a run that failed and is retried", () => {
  test.each([
    ["workflow", order, undefined, "charge"],
    ["graph", checked, {}, "pay"],
    ["flow", bill, 4, "charged"],
  ] as const)(
    "shows the failed execution before the one that completed, in a %s",
    async (_, definition, input, name) => {
      const id = `${definition.name}-1`;
      const rowOf = async (): Promise<TimelineRow> => {
        const { body } = await api.get(`/v1/runs/${id}/timeline`);
        return (body.rows as TimelineRow[]).find((row) => row.name === name)!;
      };
      const executed = ({ spans }: TimelineRow): string[] =>
        spans.flatMap(({ kind }) => (kind === "failed" || kind === "work" ? [kind] : []));
      isBroken = true;
      const run = await engine.start(definition as typeof order, input as undefined, { id });
      await expect(run.result()).rejects.toThrow();
      expect(executed(await rowOf())).toEqual(["failed"]);
      if (definition !== order) expect((await drawn(id)).nodes.find((node) => node.id === name)?.state).toBe("failed");
      isBroken = false;
      await run.retry();
      await run.result();
      const row = await rowOf();
      expect([executed(row), row.state]).toEqual([["failed", "work"], "completed"]);
      if (definition !== order) expect(new Set(Object.values(states(await drawn(id))))).toEqual(new Set(["completed"]));
    },
  );
});

test("a run of a workflow has no picture, a flow has no steps, and a server without the code says where to draw", async () => {
  expect((await api.get("/v1/runs/order-1/picture")).status).toBe(400);
  expect((await api.get("/v1/runs/bill-1/picture?step=1")).status).toBe(400);
  await using client = await createClient({ store, definitions: [] });
  await using bare = openApi(client);
  const { status, body } = await bare.get("/v1/runs/research-1/picture");
  expect(status).toBe(409);
  expect(body.detail).toContain("reprise graph <file> --run research-1");
});
