// Offers: tasks whose label only a peer has. Home and peers in one process, over HTTP.

import { describe, expect, test } from "vitest";
import { createEngine, FatalError, RetryLaterError, task, workflow, type TaskContext } from "reprise";
import { createFolder, createGate, rejection } from "../../engine/world.ts";
import { claimOf, failuresOf } from "./claims.ts";
import { one, openHome, openPeer } from "./work-site.ts";

/** A program with one labeled task; `render` is the function of the site. */
function filmAt(render: (ctx: TaskContext, frame: number) => unknown, options: object = {}) {
  const shot = task("render", { label: "gpu", ...options }, (ctx, frame: number) => render(ctx, frame));
  const film = workflow("film", async (ctx, frame: number) => ctx.task(shot, frame));
  return { film, definitions: [shot, film] };
}

const notHere = () => {
  throw new Error("The home must not execute it.");
};

describe("a task whose label only a peer has", () => {
  test("is executed at the peer with the context that it would have at home, and gives the same claim", async () => {
    using folder = createFolder();
    const seen: unknown[] = [];
    const note = ({ runId, attempt, execution, idempotencyKey }: TaskContext, frame: number) => {
      seen.push({ runId, attempt, execution, idempotencyKey, frame });
      return { rendered: frame * 2 };
    };
    const { film, definitions } = filmAt(note);
    const store = `sqlite:${folder.file("alone.db")}`;
    await using alone = await createEngine({ store, definitions, worker: { labels: ["gpu"] }, logger: false });
    expect(await (await alone.start(film, 21, { id: "film-1" })).result()).toEqual({ rendered: 42 });
    const program = filmAt(notHere);
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions: program.definitions,
      work: { gpu: one("studio") },
    });
    await using _peer = openPeer({ name: "studio", url: home.url, definitions });
    const run = await home.engine.start(program.film, 21, { id: "film-1" });
    expect(await run.result()).toEqual({ rendered: 42 });
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    expect(await claimOf(home.engine, "film-1")).toEqual(await claimOf(alone, "film-1"));
    expect(home.kept.late).toEqual([]);
  });

  test("waits until its peer is there, and goes to no peer that `work` does not name", async () => {
    using folder = createFolder();
    const where: string[] = [];
    const program = filmAt(notHere);
    const at = (name: string) => filmAt(() => where.push(name));
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions: [...program.definitions, task("store", { label: "tape" }, () => 1)],
      work: { gpu: one("studio"), tape: one("archive") },
    });
    const run = await home.engine.start(program.film, 1, { id: "film-1" });
    await using _other = openPeer({ name: "archive", url: home.url, definitions: at("archive").definitions });
    await expect.poll(() => home.worker.book.livePeers).toContain("archive");
    await using _peer = openPeer({ name: "studio", url: home.url, definitions: at("studio").definitions });
    await run.result();
    expect(where).toEqual(["studio"]);
  });

  test("is retried by the policy of its home, with the failures of all attempts in the journal", async () => {
    using folder = createFolder();
    const flaky = ({ attempt }: TaskContext) => {
      if (attempt === 1) throw new TypeError("no paper");
      if (attempt === 2) throw new RetryLaterError("1 ms", "ink dries");
      if (attempt === 3) throw Object.assign(new Error("jam"), { tray: 2 });
      throw new FatalError("fire");
    };
    const policy = { retry: { maxAttempts: 9, baseDelay: "1 ms", retryable: (error: unknown) => error !== undefined } };
    const site = filmAt(flaky, policy);
    const store = `sqlite:${folder.file("alone.db")}`;
    await using alone = await createEngine({
      store,
      definitions: site.definitions,
      worker: { labels: ["gpu"] },
      logger: false,
    });
    await rejection((await alone.start(site.film, 1, { id: "film-1" })).result());
    const program = filmAt(notHere, policy);
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions: program.definitions,
      work: { gpu: one("studio") },
    });
    await using _peer = openPeer({ name: "studio", url: home.url, definitions: site.definitions });
    const failure = await rejection((await home.engine.start(program.film, 1, { id: "film-1" })).result());
    expect(failure).toMatchObject({ code: "RUN_FAILED", cause: { name: "FatalError", message: "fire" } });
    expect(await claimOf(home.engine, "film-1")).toEqual(await claimOf(alone, "film-1"));
    expect(await failuresOf(home.engine, "film-1")).toEqual(await failuresOf(alone, "film-1"));
  });

  test("has its timeout at the peer: the time until a peer begins does not count", async () => {
    using folder = createFolder();
    const options = { timeout: "50 ms" };
    const pause = workflow("pause", async (ctx) => ctx.sleep("300 ms"));
    const { film, definitions } = filmAt(notHere, options);
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions: [...definitions, pause],
      work: { gpu: one("studio") },
    });
    const run = await home.engine.start(film, 0, { id: "film-1" });
    await (await home.engine.start(pause, undefined, { id: "pause-1" })).result();
    expect((await run.info()).status).toBe("waiting");
    const hang = (): Promise<never> => new Promise(() => {});
    await using _peer = openPeer({ name: "studio", url: home.url, definitions: filmAt(hang, options).definitions });
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "ATTEMPT_TIMEOUT" } });
  });

  test("is aborted at the peer when its run is canceled", async () => {
    using folder = createFolder();
    const reached = createGate();
    const aborted = Promise.withResolvers<unknown>();
    const endless = (ctx: TaskContext) => {
      ctx.abortSignal.addEventListener("abort", () => aborted.resolve(ctx.abortSignal.reason));
      void reached.wait();
      return new Promise(() => {});
    };
    const { film, definitions } = filmAt(notHere);
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions,
      work: { gpu: one("studio") },
    });
    await using peer = openPeer({ name: "studio", url: home.url, definitions: filmAt(endless).definitions });
    const run = await home.engine.start(film, 1, { id: "film-1" });
    await reached.reached;
    await run.cancel("no longer needed");
    expect(await aborted.promise).toMatchObject({ code: "CANCELLED" });
    await rejection(run.result());
    await expect.poll(() => peer.runningCount).toBe(0);
  });

  test("that is pure and known at home is not offered", async () => {
    using folder = createFolder();
    let calls = 0;
    const site = filmAt((_, frame) => ((calls += 1), frame + 1), { pure: "1" });
    const { film, definitions } = filmAt(notHere, { pure: "1" });
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions,
      work: { gpu: one("studio") },
    });
    await using _peer = openPeer({ name: "studio", url: home.url, definitions: site.definitions });
    expect(await (await home.engine.start(film, 1, { id: "film-1" })).result()).toBe(2);
    expect(await (await home.engine.start(film, 1, { id: "film-2" })).result()).toBe(2);
    expect(calls).toBe(1);
  });

  test("takes and returns undefined, dates and bytes", async () => {
    using folder = createFolder();
    const values = [undefined, new Date(5), new Uint8Array([1, 2]), new Map([["a", 1n]])];
    const at = (run: (input: unknown) => unknown) => {
      const echo = task("echo", { label: "gpu" }, (_, input: unknown) => run(input));
      const all = workflow("all", async (ctx) => Promise.all(values.map((value) => ctx.task(echo, value))));
      return { all, definitions: [echo, all] };
    };
    const { all, definitions } = at(notHere);
    await using home = await openHome({
      store: `sqlite:${folder.file("home.db")}`,
      definitions,
      work: { gpu: one("studio") },
    });
    await using _peer = openPeer({ name: "studio", url: home.url, definitions: at((input) => input).definitions });
    expect(await (await home.engine.start(all, undefined, { id: "all-1" })).result()).toEqual(values);
  });
});

test("several peers share the work, and each step goes to one of them", async () => {
  using folder = createFolder();
  const calls: { readonly peer: string; readonly frame: number }[] = [];
  const at = (run: (frame: number) => unknown) => {
    const shot = task("render", { label: "gpu" }, (_, frame: number) => run(frame));
    const film = workflow("film", async (ctx, frames: number) =>
      Promise.all(Array.from({ length: frames }, (_, frame) => ctx.task(shot, frame))),
    );
    return { film, definitions: [shot, film] };
  };
  const program = at(notHere);
  await using home = await openHome({
    store: `sqlite:${folder.file("home.db")}`,
    definitions: program.definitions,
    work: { gpu: one("a", "b", "c") },
  });
  const peerAt = (peer: string) =>
    openPeer({
      name: peer,
      url: home.url,
      definitions: at((frame) => (calls.push({ peer, frame }), frame)).definitions,
    });
  await using _a = peerAt("a");
  await using _b = peerAt("b");
  await using _c = peerAt("c");
  await expect.poll(() => home.worker.book.livePeers.length).toBe(3);
  const result = await (await home.engine.start(program.film, 60, { id: "film-1" })).result();
  expect(result).toEqual(Array.from({ length: 60 }, (_, frame) => frame));
  expect(calls.map(({ frame }) => frame).toSorted((a, b) => a - b)).toEqual(result);
  expect(new Set(calls.map(({ peer }) => peer))).toEqual(new Set(["a", "b", "c"]));
});
