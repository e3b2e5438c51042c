// Work at another site, over three processes: peers are killed, cut off past their lease, answered twice and too late, and the home is
// killed. Every task has one end, and the claims are those of a site that does everything itself.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { createEngine } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { storeOf } from "../../../src/stores/index.ts";
import { createFolder } from "../../engine/world.ts";
import { claimIn, claimOf, entriesIn } from "../../federation/work/claims.ts";
import { CuttableProxy } from "./cuttable-proxy.ts";
import type { Order, Report, Site } from "./work-process.ts";
import { programAt, type Frame } from "./work-program.ts";

const PROGRAM = fileURLToPath(new URL("./work-process.ts", import.meta.url));
// Long enough that a peer on a busy machine renews it in time.
const OFFER_LEASE_MS = 4_000;
const PEERS = ["studio", "barn"];
const POLL = { timeout: 60_000, interval: 25 };

const running = new Set<SiteProcess>();

class SiteProcess {
  readonly #child: ChildProcess;
  readonly reports: Report[] = [];
  #said = "";

  constructor(site: Site) {
    this.#child = spawn(process.execPath, ["--conditions=reprise-source", PROGRAM], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.on("error", () => undefined);
    this.#child.on("message", (message) => this.reports.push(message as Report));
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#said += chunk.toString()));
    this.#child.send(site);
    running.add(this);
  }

  async ready(): Promise<Extract<Report, { report: "ready" }>> {
    await expect.poll(() => this.reports.some(({ report }) => report === "ready") || this.#said, POLL).toBe(true);
    return this.reports.find((one): one is Extract<Report, { report: "ready" }> => one.report === "ready")!;
  }

  tell(order: Order): void {
    this.#child.send(order);
  }

  /** How often it began to render the frame. */
  began(film: string, n: number): number {
    return this.reports.filter((one) => one.report === "rendering" && one.frame.film === film && one.frame.n === n)
      .length;
  }

  async kill(): Promise<void> {
    running.delete(this);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

afterEach(async () => {
  await Promise.all([...running].map((site) => site.kill()));
});

/** Home and peers, and what happened at all of them. */
class World {
  readonly proxy = new CuttableProxy();
  readonly store: string;
  home!: SiteProcess;
  readonly peers = new Map<string, SiteProcess>();
  readonly past: SiteProcess[] = [];

  constructor(store: string) {
    this.store = store;
  }

  async open(): Promise<void> {
    await this.proxy.listen();
    await this.openHome();
    for (const name of PEERS) await this.openPeer(name);
  }

  async openHome(): Promise<void> {
    if (this.home !== undefined) this.past.push(this.home);
    this.home = new SiteProcess({ site: "home", store: this.store, peers: PEERS, offerLeaseMs: OFFER_LEASE_MS });
    this.proxy.target = (await this.home.ready()).url!;
  }

  async openPeer(name: string): Promise<void> {
    const before = this.peers.get(name);
    if (before !== undefined) this.past.push(before);
    const peer = new SiteProcess({ site: "peer", name, url: this.proxy.urlFor(name) });
    await peer.ready();
    this.peers.set(name, peer);
  }

  start(id: string, frames: readonly Omit<Frame, "film">[]): void {
    this.home.tell({ order: "start", id, frames: frames.map((frame) => ({ film: id, ...frame })) });
  }

  /** Waits until a peer renders the frame, other than those given. */
  async rendererOf(film: string, n: number, except: readonly SiteProcess[] = []): Promise<[string, SiteProcess]> {
    const find = () => [...this.peers].find(([, peer]) => !except.includes(peer) && peer.began(film, n) > 0);
    await expect.poll(() => find() !== undefined, POLL).toBe(true);
    return find()!;
  }

  /** What the homes kept of this peer. */
  lateOf(peer: string): readonly Report[] {
    return [this.home, ...this.past]
      .flatMap(({ reports }) => reports)
      .filter((one) => one.report === "late" && one.peer === peer);
  }
}

async function inWorld(work: (world: World, end: (id: string) => Promise<void>) => Promise<readonly string[]>) {
  using folder = createFolder();
  const store = `sqlite:${folder.file("home.db")}`;
  const world = new World(store);
  await world.open();
  const opened = await storeOf(store)["~open"]({
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    durability: "full",
  });
  try {
    const ended = async (id: string): Promise<void> => {
      await expect.poll(async () => (await opened.findRun(id))?.status, POLL).toBe("completed");
    };
    const ids = await work(world, ended);
    // One site that does everything itself.
    const { film, definitions } = programAt(() => undefined);
    await using alone = await createEngine({
      store: `sqlite:${folder.file("alone.db")}`,
      definitions,
      worker: { labels: ["gpu"] },
      logger: false,
    });
    for (const id of ids) {
      await ended(id);
      const entries = await entriesIn(opened, id);
      const { input } = JSON.parse(entries[0]!.data) as { input: readonly Frame[] };
      await (await alone.start(film, input, { id })).result();
      expect(await claimIn(opened, id)).toBe(await claimOf(alone, id));
      const ends = entries.filter(({ type }) => type === "TaskCompleted").map(({ command }) => command);
      expect(ends.toSorted()).toEqual(input.map((_, n) => `Task(${n})`).toSorted());
    }
    await world.home.kill();
    expect(await opened.check()).toEqual([]);
  } finally {
    await opened.close();
    await world.proxy.close();
  }
}

test("a frame whose peer is killed is rendered by the other one", { timeout: 240_000 }, async () => {
  await inWorld(async (world) => {
    world.start("film", [{ n: 0, held: true }, { n: 1 }, { n: 2, flaky: true }, { n: 3 }]);
    const [name, dead] = await world.rendererOf("film", 0);
    await dead.kill();
    const [, other] = await world.rendererOf("film", 0, [dead]);
    await world.openPeer(name);
    other.tell({ order: "end", film: "film", n: 0 });
    return ["film"];
  });
});

test("the end of a peer that was cut off past its lease is kept and not committed", { timeout: 240_000 }, async () => {
  await inWorld(async (sites) => {
    sites.start("film", [{ n: 0, held: true }, { n: 1 }]);
    const [name, slow] = await sites.rendererOf("film", 0);
    sites.proxy.cut(name);
    const [, other] = await sites.rendererOf("film", 0, [slow]);
    slow.tell({ order: "end", film: "film", n: 0 });
    sites.proxy.join(name);
    await expect
      .poll(() => sites.lateOf(name), POLL)
      .toContainEqual({ report: "late", peer: name, run: "film", execution: 1 });
    other.tell({ order: "end", film: "film", n: 0 });
    return ["film"];
  });
});

test("an end whose answer gets lost is posted again, and committed once", { timeout: 240_000 }, async () => {
  await inWorld(async (world, end) => {
    for (const peer of PEERS) world.proxy.loseAnswer(peer);
    for (const peer of PEERS) world.proxy.loseAnswer(peer);
    world.start(
      "film",
      Array.from({ length: 12 }, (_, n) => ({ n })),
    );
    await end("film");
    await expect.poll(() => world.proxy.ends.filter(({ isLost }) => isLost).length, POLL).toBeGreaterThan(0);
    const answered = () => world.proxy.ends.filter(({ isLost }) => !isLost).flatMap(({ body }) => answersIn(body));
    // On a busy machine a peer may lose an offer, and then its end is late.
    await expect.poll(() => answered().filter((status) => status === "committed").length, POLL).toBe(12);
    for (const { body } of world.proxy.ends)
      for (const one of answersIn(body)) expect(["committed", "late"]).toContain(one);
    return ["film"];
  });
});

test(
  "a home that is killed offers its work again; the end of the old offer is stale",
  { timeout: 240_000 },
  async () => {
    await inWorld(async (sites) => {
      sites.start("film", [{ n: 0, held: true }, { n: 1 }]);
      const [name, first] = await sites.rendererOf("film", 0);
      sites.proxy.cut(name);
      await sites.home.kill();
      await sites.openHome();
      const [, other] = await sites.rendererOf("film", 0, [first]);
      first.tell({ order: "end", film: "film", n: 0 });
      sites.proxy.join(name);
      await expect
        .poll(() => sites.lateOf(name), POLL)
        .toContainEqual({ report: "late", peer: name, run: "film", execution: 1 });
      other.tell({ order: "end", film: "film", n: 0 });
      return ["film"];
    });
  },
);

test("peers that are killed again and again render every frame of every film", { timeout: 240_000 }, async () => {
  await inWorld(async (world) => {
    const films = Array.from({ length: 8 }, (_, n) => `film-${n}`);
    for (const film of films)
      world.start(
        film,
        Array.from({ length: 10 }, (_, n) => ({ n, flaky: n % 5 === 3 })),
      );
    for (let kills = 0; kills < 4; kills += 1) {
      const name = PEERS[kills % PEERS.length]!;
      const peer = world.peers.get(name)!;
      const before = peer.reports.length;
      const rendered = () => [...world.peers.values(), ...world.past].flatMap(({ reports }) => reports).length;
      await expect.poll(() => peer.reports.length > before || rendered() >= 90, POLL).toBe(true);
      await peer.kill();
      await world.openPeer(name);
    }
    return films;
  });
});

function answersIn(body: string): readonly string[] {
  return (JSON.parse(body) as { answers: readonly { status: string }[] }).answers.map(({ status }) => status);
}
