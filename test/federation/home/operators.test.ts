// Operators on a home (F-56), and T-16: files, page sizes and what is derived change no result.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { canonicalJson, mediaType } from "../../../src/base/index.ts";
import { STATEMENT_TYPE } from "../../../src/federation/home/facts.ts";
import { openHome, type Home } from "../../../src/federation/home/home.ts";
import { contentOf, type Content } from "../../../src/federation/log/content.ts";
import { freshHome, linkOf, sync, TestOrigin, valueOf, world } from "./origin.ts";

interface RunParts {
  readonly id: string;
  readonly name?: string;
  readonly end?: string;
  readonly ended?: number;
  readonly tags?: readonly string[];
  readonly input?: Content;
  readonly output?: Content;
  readonly parent?: string;
}

/** The record, the claim and the statement of a run, as far as a home reads them. */
function runParts(origin: TestOrigin, run: RunParts): { record: Content; claim: Content; statement: Content } {
  const { id, name = "order", end = "completed", ended = 10, tags, input, output, parent } = run;
  const record = contentOf(
    mediaType("run"),
    canonicalJson({
      chain: `chain ${id}`,
      end,
      generation: 0,
      id,
      kind: "workflow",
      name,
      nonce: id,
      times: [1, ended],
      v: 1,
      version: 2,
    }),
  );
  const keys = { ...(input && { input: input.key }), ...(output && { output: output.key }) };
  const claim = contentOf(
    mediaType("claim"),
    canonicalJson({ end, name, ...keys, v: 1, of: input === undefined ? id : "" }),
  );
  const predicate = {
    chain: `chain ${id}`,
    claim: claim.key,
    generation: 0,
    origin: origin.origin,
    run: id,
    ...(tags && { tags }),
    ...(parent !== undefined && { parent: { command: "Child(0)", generation: 0, run: parent } }),
  };
  const statement = contentOf(STATEMENT_TYPE, canonicalJson({ _type: "x", predicate }));
  return { record, claim, statement };
}

function putRun(origin: TestOrigin, run: RunParts, seen: readonly TestOrigin[] = []): ReturnType<typeof runParts> {
  const parts = runParts(origin, run);
  origin.put(parts.record, seen);
  origin.put(parts.statement);
  // The log names the statement, and the statement the claim.
  origin.contents.set(parts.claim.key, parts.claim);
  return parts;
}

function syncAll(home: Home, ...origins: readonly TestOrigin[]): void {
  sync(home, ...origins);
  for (const origin of origins) home.putContents([...origin.contents.values()]);
}

test("runs are found by definition, end, tag, time and origin, in merge order", () => {
  const home = freshHome({ shards: 4 });
  const [edge, hub] = [new TestOrigin("edge").admitTo(home), new TestOrigin("hub").admitTo(home)];
  putRun(edge, { id: "o-1", tags: ["eu", "vip"], ended: 10 });
  putRun(hub, { id: "o-2", end: "failed", ended: 20 }, [edge]);
  putRun(edge, { id: "b-1", name: "bill", tags: ["eu"], ended: 30 }, [hub]);
  const hidden = putRun(edge, { id: "gone" });
  syncAll(home, edge, hub);
  const before = home.snapshots.create().id;
  edge.tomb(`a:${hidden.record.key}`);
  syncAll(home, edge);
  const ids = (...args: Parameters<Home["findRuns"]>): string[] => home.findRuns(...args).map(({ run }) => run);
  expect(ids()).toEqual(["o-1", "o-2", "b-1"]);
  expect(ids({}, before)).toEqual(["o-1", "o-2", "b-1", "gone"]);
  expect(ids({ definition: "order" })).toEqual(["o-1", "o-2"]);
  expect(ids({ status: "failed" })).toEqual(["o-2"]);
  expect(ids({ tag: "eu" })).toEqual(["o-1", "b-1"]);
  expect(ids({ tag: "eu", definition: "bill" })).toEqual(["b-1"]);
  expect(ids({ since: 20 })).toEqual(["o-2", "b-1"]);
  expect(ids({ since: 10, before: 30 })).toEqual(["o-1", "o-2"]);
  expect(ids({ origin: hub.origin })).toEqual(["o-2"]);
  expect(ids({ run: "b-1" })).toEqual(["b-1"]);
  expect(ids({ limit: 2 })).toEqual(["o-1", "o-2"]);
  expect(home.findRuns({ run: "o-1" })).toMatchObject([
    {
      origin: edge.origin,
      generation: 0,
      definition: "order",
      version: 2,
      status: "completed",
      createdAt: 1,
      endedAt: 10,
      tags: ["eu", "vip"],
    },
  ]);
  const [found] = home.findRuns({ run: "o-1" });
  expect(home.project([found!.record, found!.statement!], ["end", "predicate.run", "absent"])).toEqual([
    { key: found!.record, values: { end: "completed" } },
    { key: found!.statement, values: { "predicate.run": "o-1" } },
  ]);
});

test("artifacts are scanned by type and origin, page by page, and hidden or shadowed ones are left out", () => {
  const home = freshHome({ shards: 3 });
  const [edge, hub] = [new TestOrigin("edge").admitTo(home), new TestOrigin("hub").admitTo(home)];
  for (let i = 0; i < 6; i += 1) edge.value(i);
  hub.value(5, [edge]);
  hub.tomb(`a:${valueOf(0).key}`);
  const link = (data: number): Content => linkOf({ type: "t", from: ["run:a"], to: ["run:b"], data });
  hub.put(link(1));
  hub.put(link(2));
  sync(home, edge, hub);
  const type = mediaType("value");
  const keys = (...args: Parameters<Home["scan"]>): string[] => home.scan(...args).map(({ key }) => key);
  const values = [1, 2, 3, 4, 5].map((i) => valueOf(i).key);
  expect(keys({ type })).toEqual(values);
  expect(keys({ type, origin: edge.origin })).toEqual(values);
  expect(keys({ type, origin: hub.origin })).toEqual([valueOf(5).key]);
  expect(keys({ type: mediaType("link") })).toEqual([link(2).key]);
  expect(keys()).toEqual([...values, link(2).key]);
  const first = home.scan({ type, limit: 2 });
  expect(first.map(({ key }) => key)).toEqual(values.slice(0, 2));
  expect(keys({ type, after: first[1]!, limit: 2 })).toEqual(values.slice(2, 4));
  home.gc();
  expect(keys({ type })).toEqual(values);
});

test("a search goes over links, claims and statements, both ways, and stops at its limits", () => {
  const home = freshHome({ shards: 2 });
  const edge = new TestOrigin("edge").admitTo(home);
  const [a, b, c] = [valueOf("a"), valueOf("b"), valueOf("c")];
  const first = putRun(edge, { id: "r-1", input: a, output: b });
  putRun(edge, { id: "r-2", input: b, output: c, parent: "r-1" });
  const link = linkOf({ type: "supersedes", from: ["run:r-2"], to: ["run:r-0"] });
  edge.put(link);
  syncAll(home, edge);
  const steps = (start: string, direction: "forward" | "back", more = {}): string[] =>
    home.traverse(start, { direction, ...more }).relations.map(({ type, depth }) => `${depth} ${type}`);
  const back = steps(c.key, "back");
  expect(back.toSorted()).toEqual([
    "1 generated",
    "2 claimed",
    "2 used",
    "3 generated",
    "3 informed",
    "4 claimed",
    "4 used",
  ]);
  expect(back).toEqual(back.toSorted((x, y) => Number(x[0]) - Number(y[0])));
  expect(steps("run:r-1", "forward")).toEqual([
    "1 claimed",
    "1 informed",
    "2 generated",
    "2 claimed",
    "2 supersedes",
    "3 generated",
    "3 used",
  ]);
  expect(steps("run:r-1", "forward", { types: ["informed", "supersedes"] })).toEqual(["1 informed", "2 supersedes"]);
  expect(home.traverse("run:r-1", { direction: "forward", depth: 1 })).toMatchObject({
    isCut: true,
    relations: { length: 2 },
  });
  expect(home.traverse("run:r-1", { direction: "forward", limit: 3 })).toMatchObject({
    isCut: true,
    relations: { length: 3 },
  });
  expect(home.traverse("run:r-1", { direction: "forward" }).isCut).toBe(false);

  const before = home.snapshots.create().id;
  edge.tomb(`a:${first.statement.key}`);
  syncAll(home, edge);
  expect(steps("run:r-1", "forward", { types: ["claimed"] })).toEqual([]);
  expect(home.traverse("run:r-1", { direction: "forward", types: ["claimed"] }, before).relations).toHaveLength(1);
});

test("a link that another one shadows leads nowhere at the snapshots that have the other one", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const link = (data: number): Content => linkOf({ type: "t", from: ["run:a"], to: ["run:b"], data });
  edge.put(link(1));
  sync(home, edge);
  const early = home.snapshots.create().id;
  edge.put(link(2));
  sync(home, edge);
  const by = (snapshot?: string): string[] =>
    home.traverse("run:a", { direction: "forward" }, snapshot).relations.map((relation) => relation.by);
  expect(by(early)).toEqual([link(1).key]);
  expect(by()).toEqual([link(2).key]);
});

/** Everything that the operators say, at every snapshot. */
function results(home: Home, snapshots: readonly string[]): unknown {
  return [undefined, ...snapshots].map((snapshot) => ({
    hash: home.stateHash(snapshot),
    provenance: [...home.snapshots.provenance(snapshot)],
    scans: [{}, { type: mediaType("value") }, { type: mediaType("link"), limit: 3 }].map((filter) =>
      home.scan(filter, snapshot),
    ),
    runs: [{}, { tag: "t1" }, { definition: "bill" }, { since: 15 }].map((filter) => home.findRuns(filter, snapshot)),
    hops: ["run:0", "run:x", "run:run-1"].flatMap((start) =>
      (["forward", "back"] as const).map((direction) => home.traverse(start, { direction }, snapshot)),
    ),
    missing: home.missing(),
  }));
}

const DERIVED = ["cell", "relation_end", "link_slot", "wanted"];

test("with 1, 7 and 256 files, small and large pages, and everything derived dropped and made again, all results are the same", () => {
  const origins = world("files", 60);
  for (let i = 0; i < 12; i += 1)
    putRun(origins[i % 3]!, {
      id: `run-${i}`,
      name: i % 2 === 0 ? "order" : "bill",
      tags: [`t${i % 4}`],
      ended: i * 2,
      parent: `run-${i - 1}`,
    });
  let first: unknown;
  for (const [shards, pageSize] of [
    [1, 4_096],
    [7, 16_384],
    [256, 4_096],
  ] as const) {
    const home = freshHome({ shards, pageSize });
    for (const origin of origins) origin.admitTo(home);
    const snapshots: string[] = [];
    for (const part of [0.4, 1]) {
      for (const origin of origins) {
        const upTo = Math.floor(origin.size * part);
        // One of them without contents.
        expect(home.ingest(origin.batch(home, upTo, origin === origins[2] ? { contents: [] } : {}))).toMatchObject({
          status: "ingested",
        });
      }
      snapshots.push(home.snapshots.create().id);
    }
    for (const origin of origins.slice(0, 2)) home.putContents([...origin.contents.values()]);
    const got = results(home, snapshots);
    first ??= got;
    expect(got, `${shards} shards`).toEqual(first);

    const db = new DatabaseSync(join(home.dir, "federation.db"));
    expect(Object.values(db.prepare("pragma page_size").get()!)).toEqual([pageSize]);
    for (const table of DERIVED) db.exec(`delete from ${table}`);
    db.close();
    home.rebuild();
    expect(results(home, snapshots), `${shards} shards, made again`).toEqual(first);
    expect(home.check()).toEqual([]);
  }
});

test("a shard that is put in the place of another one is refused", () => {
  const home = freshHome({ shards: 2 });
  home.putContents([...Array(20).keys()].map((i) => valueOf(i)));
  home.close();
  const path = (index: number): string => join(home.dir, "federation", `0${index}.db`);
  rmSync(path(1));
  new DatabaseSync(path(0)).exec(`vacuum into '${path(1)}'`);
  const again = openHome(home.dir);
  expect(() => again.scan()).toThrow(expect.objectContaining({ code: "STORE_CORRUPT" }) as Error);
  again.close();
});
