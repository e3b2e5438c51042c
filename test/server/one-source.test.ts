// The command line, its JSON and the HTTP API show the same run the same way: pictures and timelines come from one model each.

import { join } from "node:path";
import { createClient, type Client } from "reprise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jsonLines, ROOT } from "../cli/cli-process.ts";
import { charge, pay } from "../cli/definitions.ts";
import { readDot, readMermaid } from "../cli/diagram-grammar.ts";
import * as flows from "../cli/flows.ts";
import * as graphs from "../cli/graphs.ts";
import { StoreWithRuns } from "../cli/store-with-runs.ts";
import type { RunPicture, Timeline } from "../../src/contract/index.ts";
import { openApi, type Api } from "./api.ts";

const { agent, failing, waits } = graphs;
const { double, shop, broken, wide } = flows;
const ALL = [agent, failing, waits, graphs.sub, double, shop, broken, wide, pay, charge];
const store = new StoreWithRuns(ALL);
let client: Client<any>;
let api: Api;

const RUNS = [
  ["agent-1", "test/cli/graphs.ts"],
  ["failing-1", "test/cli/graphs.ts"],
  ["waits-1", "test/cli/graphs.ts"],
  ["fork-1", "test/cli/graphs.ts"],
  ["shop-1", "test/cli/flows.ts"],
  ["broken-1", "test/cli/flows.ts"],
  ["wide-1", "test/cli/flows.ts"],
] as const;

beforeAll(async () => {
  const prices = Array.from({ length: 40 }, (_, index) => (index % 3 === 1 ? -1 : 10));
  await store.start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "agent-1", what: agent, input: { questions: ["why"] }, until: "waiting" },
    { id: "failing-1", what: failing, input: {}, until: "failed" },
    { id: "waits-1", what: waits, input: {}, until: "waiting" },
    { id: "shop-1", what: shop, input: { prices, password: "tulip" }, until: "waiting" },
    { id: "broken-1", what: broken, input: 5, until: "failed" },
    { id: "wide-1", what: wide, input: 50, until: "completed" },
  );
  const forked = await store.cli("fork", "agent-1", "--step", "2", "--id", "fork-1");
  expect(forked.code, forked.stderr).toBe(0);
  client = await createClient({ store: store.url, definitions: ALL });
  api = openApi(client);
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await client?.[Symbol.asyncDispose]();
  store[Symbol.dispose]();
});

/** States that a diagram shows in one color. */
const COLORS: Readonly<Record<RunPicture["nodes"][number]["state"], string>> = {
  ...{ idle: "", completed: "green", failed: "red", pending: "blue", skipped: "gray", cancelled: "gray" },
  ...{ queued: "yellow", running: "yellow", waiting: "yellow", retrying: "yellow" },
};

async function pictureOf(id: string): Promise<RunPicture> {
  const { status, body } = await api.get(`/v1/runs/${id}/picture`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as RunPicture;
}

describe.each(RUNS)("%s", (id, file) => {
  const drawn = (...args: readonly string[]) => store.cli("graph", join(ROOT, file), "--run", id, ...args);

  test("graph --json prints the picture that the API answers", async () => {
    const [json] = jsonLines((await drawn("--json")).stdout);
    expect(json!["run"]).toEqual(await pictureOf(id));
  });

  test.each([
    ["mermaid", readMermaid],
    ["dot", readDot],
  ] as const)("%s has the nodes, edges and states of that picture", async (format, read) => {
    const { nodes, edges, started, ended } = await pictureOf(id);
    const { boxes, arrows, marks } = read((await drawn("--format", format)).stdout);
    const markOf = (box: string): string | undefined =>
      [...marks].find(([mark, ids]) => mark !== "open" && ids.includes(box))?.[0];
    const place = new Map(nodes.map((node, index) => [node.id, `g0n${index}`]));
    for (const node of nodes) {
      const { lines } = boxes.get(place.get(node.id)!)!;
      expect(lines[0]).toBe(`${node.name}${node.runs > 1 ? ` ×${node.runs}` : ""}`);
      expect(lines).toEqual(expect.arrayContaining([...node.notes, ...(node.text === undefined ? [] : [node.text])]));
    }
    expect(arrows.map(({ from, to }) => [from, to])).toEqual(
      edges.map(({ from, to }) => [
        from === undefined ? "g0start" : place.get(from),
        to === undefined ? "g0end" : place.get(to),
      ]),
    );
    const colors = Map.groupBy(nodes, (node) => COLORS[node.state]);
    const marksOf = (alike: typeof nodes): Set<string | undefined> =>
      new Set(alike.map((node) => markOf(place.get(node.id)!)));
    for (const [color, alike] of colors) expect(marksOf(alike).size, color).toBe(1);
    expect(marksOf(nodes).size).toBe(colors.size);
    expect([markOf("g0start") !== undefined, markOf("g0end") !== undefined]).toEqual([started, ended]);
  });

  test("show --json --timeline prints the timeline that the API answers", async () => {
    const [json] = jsonLines((await store.cli("show", id, "--json", "--timeline")).stdout);
    const { body } = await api.get(`/v1/runs/${id}/timeline?limit=1000`);
    expect(withoutClock(json!["timeline"] as Timeline)).toEqual(withoutClock(body as Timeline));
  });
});

/**
 * Without the time of the answer. A server with the code of a flow knows when a node could start: only there its row begins with a wait for a
 * worker.
 */
function withoutClock({ now: _now, rows, ...timeline }: Timeline): object {
  const shown = rows.map(({ spans, ...row }) => ({ ...row, spans: spans.filter(({ kind }) => kind !== "queue") }));
  return { ...timeline, rows: shown.toSorted((a, b) => (a.command < b.command ? -1 : 1)) };
}
