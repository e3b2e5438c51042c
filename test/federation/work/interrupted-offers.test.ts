// Offers that do not go as planned: lost, late, repeated, foreign and false ends. A peer of these tests speaks the protocol by hand.

import { describe, expect, test } from "vitest";
import { task, workflow } from "reprise";
import { encode, valueKey } from "../../../src/base/index.ts";
import { OfferClient } from "../../../src/federation/work/offer-client.ts";
import type { WorkTarget } from "../../../src/federation/work/offer-job.ts";
import type { End, EndAnswer, EndsRequest, Offer } from "../../../src/federation/work/offer.ts";
import { stepStatement, taskStep } from "../../../src/federation/work/step-statement.ts";
import type { Call } from "../../../src/federation/serve/route.ts";
import { createFolder, rejection } from "../../engine/world.ts";
import { claimIn, entriesIn } from "./claims.ts";
import { keyOf, listen, OFFER_LEASE_MS, one, openHome, openPeer, tokenOf } from "./work-site.ts";

function filmAt(render: (frame: number) => unknown = () => "at home", options: object = {}) {
  const shot = task("render", { label: "gpu", ...options }, (_, frame: number) => render(frame));
  const film = workflow("film", async (ctx, frame: number) => ctx.task(shot, frame));
  return { film, definitions: [shot, film] };
}

/** A peer that does only what the test says. */
function peerByHand(name: string, url: string) {
  const client = new OfferClient({ name: "home", url, token: tokenOf(name) });
  const { signal } = new AbortController();
  const post = async (end: End): Promise<EndAnswer> => {
    const { answers } = await client.ends({ ends: [end] }, signal);
    const [answer] = answers;
    if (answer === undefined || "refused" in answer) throw new Error(`refused: ${answer?.refused}`);
    return answer;
  };
  return {
    claim: async (): Promise<Offer> => {
      for (;;) {
        const { offers } = await client.claim({ tasks: ["render"], free: 1, waitMs: 10_000 }, signal);
        if (offers[0] !== undefined) return offers[0];
      }
    },
    /** Asks once, without waiting. */
    ask: () => client.claim({ tasks: ["render"], free: 1 }, signal),
    renew: (...offers: readonly string[]) => client.renew({ offers, free: 1 }, signal),
    input: async (key: string) => (await client.inputs({ keys: [key] }, signal)).texts[key],
    end: (offer: Offer, result: string, signer = name): Promise<EndAnswer> =>
      post({ offer: offer.offer, result, statement: statementOf(signer, offer, { result }) }),
    fail: (offer: Offer, error: string): Promise<EndAnswer> =>
      post({ offer: offer.offer, error, statement: statementOf(name, offer, { error }) }),
    post,
  };
}

function statementOf(
  peer: string,
  { command, task: name, run, generation, attempt, execution }: Offer,
  end: { readonly result?: string; readonly error?: string },
): string {
  const key = keyOf(peer);
  const step = taskStep(command, name, "7", end);
  const facts = { run, generation, attempt, execution, step, runtime: "{}", startedAt: 1, tookMs: 1 };
  return stepStatement({ origin: key.origin, ...facts }, key);
}

async function startFilm(folder: { file(name: string): string }, work: WorkTarget, options: object = {}) {
  const { film, definitions } = filmAt(undefined, options);
  const home = await openHome({ store: `sqlite:${folder.file("home.db")}`, definitions, work: { gpu: work } });
  const run = await home.engine.start(film, 7, { id: "film-1" });
  return Object.assign(home, { run });
}

/** The ends of tasks in the journal of film-1. */
async function endsIn({ store }: Pick<Awaited<ReturnType<typeof startFilm>>, "store">) {
  const entries = await entriesIn(store, "film-1");
  return entries.filter(({ type }) => /^Task(?:Completed|Failed)$/.test(type)).map(({ data }) => data);
}

describe("an offer whose peer does not renew it", () => {
  test("goes to another peer with the next execution and the same attempt; the end that comes late is kept and changes nothing", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio", "barn"));
    const [studio, barn] = [peerByHand("studio", home.url), peerByHand("barn", home.url)];
    const lost = await studio.claim();
    home.time.skip(OFFER_LEASE_MS);
    const again = await barn.claim();
    expect(again).toEqual({ ...lost, offer: again.offer, execution: 2 });
    expect(again.offer).not.toBe(lost.offer);
    expect(await studio.end(lost, '"late"')).toEqual({ status: "late" });
    expect(await endsIn(home)).toEqual([]);
    expect(await barn.end(again, '"in time"')).toEqual({ status: "committed" });
    expect(await home.run.result()).toBe("in time");
    expect(await endsIn(home)).toEqual(['{"result":"in time"}']);
    const executed = { run: "film-1", execution: 1, step: { command: "Task(0)", out: valueKey('"late"') } };
    expect(home.kept.late).toMatchObject([{ peer: "studio", result: '"late"', executed }]);
  });

  test("is gone at its next renewal, and its input cannot be had any more", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio", "barn"));
    const studio = peerByHand("studio", home.url);
    const lost = await studio.claim();
    expect(await studio.input(lost.input!)).toBe("7");
    home.time.skip(OFFER_LEASE_MS);
    await peerByHand("barn", home.url).claim();
    expect(await studio.renew(lost.offer)).toEqual({ gone: [lost.offer] });
    expect((await rejection(studio.input(lost.input!))).message).toContain("NOT_ADMITTED");
  });

  test("stays with its peer while the peer renews it", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio", "barn"));
    const studio = peerByHand("studio", home.url);
    const offer = await studio.claim();
    for (let third = 0; third < 9; third += 1) {
      home.time.skip(OFFER_LEASE_MS / 3);
      expect(await studio.renew(offer.offer)).toEqual({ gone: [] });
    }
    expect(await studio.end(offer, '"made"')).toEqual({ status: "committed" });
    expect(await home.run.result()).toBe("made");
  });
});

describe("the end of an offer", () => {
  test("that is posted twice, at once and later, is committed once and answered alike", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio"));
    const studio = peerByHand("studio", home.url);
    const offer = await studio.claim();
    const answers = await Promise.all([studio.end(offer, '"a"'), studio.end(offer, '"a"'), studio.end(offer, '"b"')]);
    expect(answers).toEqual(Array.from({ length: 3 }, () => ({ status: "committed" })));
    expect(await home.run.result()).toBe("a");
    expect(await studio.end(offer, '"a"')).toEqual({ status: "committed" });
    expect(await endsIn(home)).toEqual(['{"result":"a"}']);
  });

  test("of another peer's offer is late", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio", "barn"));
    const [studio, barn] = [peerByHand("studio", home.url), peerByHand("barn", home.url)];
    const { taken, by, other } = await claimedBy(studio, barn);
    expect(await other.end(taken, '"stolen"')).toEqual({ status: "late" });
    expect(await by.end(taken, '"own"')).toEqual({ status: "committed" });
    expect(await home.run.result()).toBe("own");
  });

  test("whose item the store has given to another worker meanwhile is late", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio"));
    const studio = peerByHand("studio", home.url);
    const offer = await studio.claim();
    // As after a pause of the home's process that was longer than its lease.
    const [holder] = (await home.store.listWorkers()).filter(({ name }) => name.startsWith("federation/"));
    await home.store.releaseWorker(holder!.worker);
    expect(await studio.end(offer, '"made"')).toEqual({ status: "late" });
    expect(home.kept.late).toMatchObject([{ peer: "studio", result: '"made"' }]);
    expect(await endsIn(home)).toEqual([]);
  });

  test("is refused if its statement is of another key, of another step, or of another result", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio"));
    const studio = peerByHand("studio", home.url);
    const offer = await studio.claim();
    const refusals = [
      studio.end(offer, '"made"', "barn"),
      studio.post({
        offer: offer.offer,
        result: '"made"',
        statement: statementOf("studio", offer, { result: '"other"' }),
      }),
      studio.post({
        offer: offer.offer,
        result: '"made"',
        statement: statementOf("studio", { ...offer, run: "film-2" }, { result: '"made"' }),
      }),
      studio.post({ offer: offer.offer, result: '"made"', statement: "{}" }),
      studio.post({ offer: offer.offer, result: "{", statement: statementOf("studio", offer, { result: "{" }) }),
    ];
    for (const refusal of refusals) expect((await rejection(refusal)).message).toContain("refused: ");
    expect(await studio.end(offer, '"made"')).toEqual({ status: "committed" });
  });

  test("of a peer that `work` does not name is refused", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio"));
    const server = await listen(home.routes, ["stranger"]);
    const stranger = peerByHand("stranger", server.url);
    expect((await rejection(stranger.ask())).message).toContain("NOT_ADMITTED");
    await server.close();
  });

  test("that declines gives the item back", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, one("studio"));
    const studio = peerByHand("studio", home.url);
    const offer = await studio.claim();
    expect(await studio.post({ offer: offer.offer, declined: "no paper" })).toEqual({ status: "retried" });
    const again = await studio.claim();
    expect(again).toMatchObject({ attempt: 0, execution: 2 });
    expect(await studio.end(again, '"made"')).toEqual({ status: "committed" });
  });
});

describe("with a redundancy of 2", () => {
  const twice = (...peers: readonly string[]): WorkTarget => ({ peers, redundancy: 2 });

  test("two peers execute the task, and equal ends are committed once", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, twice("studio", "barn", "attic"));
    const peers = ["studio", "barn", "attic"].map((name) => peerByHand(name, home.url));
    const executing: { readonly peer: PeerByHand; readonly offer: Offer }[] = [];
    while (executing.length < 2)
      for (const peer of peers) for (const offer of (await peer.ask()).offers) executing.push({ peer, offer });
    expect(new Set(executing.map(({ peer }) => peer)).size).toBe(2);
    for (const peer of peers) expect((await peer.ask()).offers).toEqual([]);
    expect(await executing[0]!.peer.end(executing[0]!.offer, '"same"')).toEqual({ status: "waiting" });
    expect(await endsIn(home)).toEqual([]);
    expect(await executing[1]!.peer.end(executing[1]!.offer, '"same"')).toEqual({ status: "committed" });
    expect(await home.run.result()).toBe("same");
    expect(await endsIn(home)).toEqual(['{"result":"same"}']);
    expect(home.kept.divergences).toEqual([]);
  });

  test("ends that differ are kept with both statements, and neither is committed", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, twice("studio", "barn"));
    const [studio, barn] = [peerByHand("studio", home.url), peerByHand("barn", home.url)];
    const [first, second] = [await studio.claim(), await barn.claim()];
    expect(await studio.end(first, "1")).toEqual({ status: "waiting" });
    expect(await barn.end(second, "2")).toEqual({ status: "committed" });
    expect(await rejection(home.run.result())).toMatchObject({ cause: { code: "RESULTS_DIVERGED" } });
    expect(home.kept.divergences).toMatchObject([
      { run: "film-1", command: "Task(0)", ends: [{ peer: "studio" }, { peer: "barn" }] },
    ]);
  });

  test("a failure at one of them is the failure of the attempt, and the end of the other is late", async () => {
    using folder = createFolder();
    await using home = await startFilm(folder, twice("studio", "barn"));
    const [studio, barn] = [peerByHand("studio", home.url), peerByHand("barn", home.url)];
    const [first, second] = [await studio.claim(), await barn.claim()];
    expect(await studio.fail(first, encode(new Error("jam")))).toEqual({ status: "committed" });
    expect(await rejection(home.run.result())).toMatchObject({ cause: { message: "jam" } });
    expect(await barn.end(second, '"made"')).toEqual({ status: "late" });
  });
});

/** A home that makes one offer and sends this text for its input; `ended` is what the peer posts. */
async function homeByHand(text: string) {
  let claims = 0;
  const ended = Promise.withResolvers<EndsRequest>();
  const offer: Offer = {
    offer: "1",
    run: "film-1",
    generation: 0,
    command: "Task(0)",
    epoch: 0,
    task: "render",
    attempt: 4,
    execution: 9,
    idempotencyKey: "made by another version",
    input: valueKey("7"),
  };
  const answers: Readonly<Record<string, (body: unknown) => object | Promise<object>>> = {
    "/offers/claim": async () => {
      claims += 1;
      if (claims > 1) await ended.promise;
      return { offers: claims === 1 ? [offer] : [], gone: [], leaseMs: 60_000 };
    },
    "/offers/renew": () => ({ gone: [] }),
    "/offers/inputs": () => ({ texts: { [valueKey("7")]: text } }),
    "/offers/end": (body) => (ended.resolve(body as EndsRequest), { answers: [{ status: "committed" }] }),
  };
  const routes = Object.entries(answers).map(([path, answer]) => ({
    method: "POST" as const,
    path: new RegExp(`^${path}$`),
    access: "peer" as const,
    body: { name: "artifactBytes" as const, bytes: 1_000_000 },
    handle: async (call: Call) => Response.json(await answer(await call.json())),
  }));
  const { url, close } = await listen(routes, ["studio"]);
  return { url, ended: ended.promise, [Symbol.asyncDispose]: close };
}

test("a peer that gets another input than the offer names does not execute the task", async () => {
  let calls = 0;
  await using lying = await homeByHand("8");
  await using _peer = openPeer({
    name: "studio",
    url: lying.url,
    definitions: filmAt(() => (calls += 1)).definitions,
  });
  expect(await lying.ended).toMatchObject({
    ends: [{ offer: "1", declined: expect.stringContaining(valueKey("7")) as string }],
  });
  expect(calls).toBe(0);
});

test("a peer calls the function with the attempt, execution and idempotency key of the offer", async () => {
  await using home = await homeByHand("7");
  const shot = task("render", { label: "gpu" }, ({ runId, attempt, execution, idempotencyKey }, frame: number) => ({
    ...{ runId, attempt, execution, idempotencyKey, frame },
  }));
  await using _peer = openPeer({ name: "studio", url: home.url, definitions: [shot] });
  const { ends } = await home.ended;
  expect(JSON.parse((ends[0] as { result: string }).result)).toEqual({
    runId: "film-1",
    attempt: 5,
    execution: 9,
    idempotencyKey: "made by another version",
    frame: 7,
  });
});

test("an input that the peer has is not fetched", async () => {
  using folder = createFolder();
  const { film, definitions } = filmAt();
  await using home = await openHome({
    store: `sqlite:${folder.file("home.db")}`,
    definitions,
    work: { gpu: one("studio") },
  });
  const kept = new Map([[valueKey("7"), "7"]]);
  const inputs = {
    find: (key: string) => kept.get(key),
    keep: (key: string, text: string) => void kept.set(key, text),
  };
  const frames: number[] = [];
  const at = filmAt((frame) => frames.push(frame));
  await using _peer = openPeer({ name: "studio", url: home.url, definitions: at.definitions, inputs });
  await (await home.engine.start(film, 7, { id: "film-1" })).result();
  expect(home.asked).not.toContain("/offers/inputs");
  await (await home.engine.start(film, 8, { id: "film-2" })).result();
  expect(home.asked).toContain("/offers/inputs");
  expect(kept.get(valueKey("8"))).toBe("8");
  expect(frames).toEqual([7, 8]);
  expect(await claimIn(home.store, "film-1")).not.toBe(await claimIn(home.store, "film-2"));
});

type PeerByHand = ReturnType<typeof peerByHand>;

/** The offer, and which of the two peers got it. */
async function claimedBy(a: PeerByHand, b: PeerByHand) {
  for (;;) {
    const [ofA] = (await a.ask()).offers;
    if (ofA !== undefined) return { taken: ofA, by: a, other: b };
    const [ofB] = (await b.ask()).offers;
    if (ofB !== undefined) return { taken: ofB, by: b, other: a };
  }
}
