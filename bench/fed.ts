// fed: what a site costs: taking logs, journals and contents, an exchange without news, and the time until a new record is elsewhere. Each
// beside the raw limit: a bare loop that moves the same bytes and does nothing else.
//
// `runs` and `steps` compare an engine on a store that records its runs with one on a store that does not, in turns, so that a busy
// machine is busy for both.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { createEngine, type Client, type Definition } from "reprise";
import { createFederation } from "reprise/federation";
import { canonicalJson, mediaType, systemClock, systemRandom, systemTimers } from "../src/base/index.ts";
import { openCarrier, type Carrier } from "../src/federation/index.ts";
import { openHome, type Home } from "../src/federation/home/home.ts";
import type { Batch } from "../src/federation/home/ingest.ts";
import { contentOf, type Content } from "../src/federation/log/content.ts";
import { createFederationHandler } from "../src/federation/serve/federation-handler.ts";
import { listen, tokenDigest } from "../src/http/index.ts";
import { pullFrom, type PulledLog } from "../src/federation/sync/pull.ts";
import { pushTo } from "../src/federation/sync/push.ts";
import { SyncState } from "../src/federation/sync/sync-state.ts";
import { journalFile } from "../src/federation/sync/journal-file.ts";
import { leafHash, MerkleTree } from "../src/receipts/index.ts";
import { TestOrigin } from "../test/federation/home/log-writer.ts";
import { definitions, steps } from "./definitions.ts";
import { percentile } from "./statistics.ts";
import { scaled, type Measured, type Plan, type Workload } from "./workload.ts";

const BATCH = 4_096;
const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };

type Stage = (folder: string, plan: Plan) => Promise<Measured>;

let opened = 0;
const fresh = (folder: string): string => join(folder, `home-${(opened += 1)}`);

/** A log of run records, as a busy site has it. */
function logOf(count: number): TestOrigin {
  const site = new TestOrigin("bench");
  for (let n = 0; n < count; n += 1) site.put(runRecord(n));
  return site;
}

function runRecord(n: number): Content {
  const id = `order-${n}`;
  const chain = n.toString(16).padStart(64, "0");
  const nonce = n.toString(16).padStart(32, "0");
  const times = [1_763_280_000_000 + n, 1_763_280_000_500 + n];
  const fields = {
    chain,
    end: "completed",
    generation: 0,
    id,
    kind: "workflow",
    name: "order",
    nonce,
    size: 12,
    times,
  };
  return contentOf(mediaType("run"), canonicalJson({ ...fields, v: 1, version: 1 }));
}

/** Rows of texts and bytes, written by a plain loop in transactions of the same size, with the same durability. */
function rawRows(folder: string, rows: readonly (readonly [string, Uint8Array])[], size: number): number {
  const db = new DatabaseSync(`${fresh(folder)}.raw.db`);
  db.exec("pragma journal_mode = wal; pragma synchronous = full");
  db.exec(
    "create table log (n integer primary key, rec text); create table content (key text primary key, bytes blob)",
  );
  const [log, content] = [
    db.prepare("insert into log values (?, ?)"),
    db.prepare("insert or ignore into content values (?, ?)"),
  ];
  const startedAt = performance.now();
  for (let at = 0; at < rows.length; at += size) {
    db.exec("begin");
    for (const [index, [text, bytes]] of rows.slice(at, at + size).entries()) {
      log.run(at + index, text);
      content.run(`${at + index}`, bytes);
    }
    db.exec("commit");
  }
  const elapsedMs = performance.now() - startedAt;
  db.close();
  return (rows.length / elapsedMs) * 1_000;
}

/** Wall and CPU time of the work alone, without what prepares it. */
interface Time {
  readonly elapsedMs: number;
  readonly cpuMs: number;
}

async function timed(work: () => Promise<void> | void): Promise<Time> {
  const usage = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(usage);
  return { elapsedMs, cpuMs: (user + system) / 1_000 };
}

function measured(count: number, time: Time, rawPerSecond: number, extra: Record<string, number> = {}): Measured {
  const { elapsedMs, cpuMs } = time;
  const perSecond = (count / elapsedMs) * 1_000;
  const cpu = { cpuUsPerStep: (cpuMs / count) * 1_000, perCpuSecond: (count / cpuMs) * 1_000 };
  const limits = { perSecond, rawPerSecond, ratio: perSecond / rawPerSecond, ...cpu };
  return { runs: 1, steps: count, elapsedMs, latenciesMs: [], extra: { ...limits, ...extra } };
}

const STAGES: Readonly<Record<string, Stage>> = {
  /** Records with their run records, cells and facts. */
  async ingest(folder, plan) {
    const site = logOf(scaled(50_000, plan));
    using home = openHome(fresh(folder));
    home.admit(site.key.vkey);
    const batches: Batch[] = [];
    for (let at = 0; at < site.size; at += BATCH) batches.push(site.batchFrom(at, Math.min(at + BATCH, site.size)));
    const time = await timed(() => {
      for (const batch of batches) {
        const outcome = home.ingest(batch);
        if (outcome.status !== "ingested") throw new Error(`The batch was ${outcome.status}.`);
      }
    });
    const rows = site.texts.map((text, n) => [text, site.contents.get(site.records[n]!.k!)!.bytes] as const);
    return measured(site.size, time, rawRows(folder, rows, BATCH));
  },

  /** Journals of 1,000 entries, as leaves. */
  async journals(folder, plan) {
    const files = Array.from({ length: scaled(50, plan) }, (_, n) => journalOf(n));
    using home = openHome(fresh(folder));
    const time = await timed(() => {
      for (const { root, lines } of files) {
        const outcome = home.putJournal(root, lines);
        if (outcome.status !== "stored") throw new Error(`The journal was refused: ${outcome.reason}`);
      }
    });
    const rows = files.map(({ root, lines }) => [root, lines] as const);
    return measured(files.length * ENTRIES, time, rawRows(folder, rows, 1) * ENTRIES);
  },

  /** Contents of 256 KB; the rate is in MB per second. */
  async artifacts(folder, plan) {
    const count = scaled(200, plan);
    const contents = Array.from({ length: count }, () =>
      contentOf("application/octet-stream", systemRandom.bytes(256 * 1024)),
    );
    using home = openHome(fresh(folder));
    const time = await timed(() => {
      for (let at = 0; at < count; at += 16) home.putContents(contents.slice(at, at + 16));
    });
    const rows = contents.map(({ key, bytes }) => [key, bytes] as const);
    return measured(count / 4, time, rawRows(folder, rows, 16) / 4);
  },

  /** A log over NATS: pushed once, then pulled into an empty home. */
  async nats(folder, plan) {
    await using server = await NatsProcess.start(fresh(folder));
    if (server === undefined)
      return { runs: 0, steps: 1, elapsedMs: 1, latenciesMs: [], skipped: "nats-server is not installed" };
    const carrier = await openCarrier(`${server.url}/bench`, PORTS);
    try {
      return await overCarrier(folder, carrier, scaled(50_000, plan));
    } finally {
      await carrier.close();
    }
  },

  /** A pull without news over HTTP: requests and time. The raw limit is a bare request for the same file. */
  async idle(folder, plan) {
    const site = logOf(1_000);
    await using pair = await HttpPair.open(folder, site);
    await pair.pull();
    const rounds = scaled(500, plan);
    const before = pair.requests;
    const latenciesMs: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      await pair.pull();
      latenciesMs.push(performance.now() - startedAt);
    }
    const requestsPerSync = (pair.requests - before) / rounds;
    const rawMs: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      await pair.fetchHead();
      rawMs.push(performance.now() - startedAt);
    }
    const elapsedMs = latenciesMs.reduce((sum, ms) => sum + ms, 0);
    const extra = { requestsPerSync, rawP50Ms: percentile(rawMs, 0.5) ?? 0 };
    return { runs: rounds, steps: rounds, elapsedMs, latenciesMs, extra };
  },

  /** From the commit of a record at one site until another site has committed it, with a pull that waits. */
  async visible(folder, plan) {
    const site = logOf(1);
    await using pair = await HttpPair.open(folder, site);
    await pair.pull();
    const latenciesMs: number[] = [];
    for (let round = 0; round < scaled(200, plan); round += 1) {
      const waiting = pair.pull(10_000);
      await pair.isWaiting();
      site.put(runRecord(site.size));
      const startedAt = performance.now();
      pair.take(site);
      await waiting;
      if (pair.reader.origin(site.origin)?.size !== site.size) throw new Error("The record did not arrive.");
      latenciesMs.push(performance.now() - startedAt);
    }
    const elapsedMs = latenciesMs.reduce((sum, ms) => sum + ms, 0);
    return { runs: latenciesMs.length, steps: latenciesMs.length, elapsedMs, latenciesMs };
  },

  runs: (folder, plan) => onAndOff(folder, scaled(4_000, plan), 1),
  steps: (folder, plan) => onAndOff(folder, scaled(800, plan), 10),
};

const ENTRIES = 1_000;

function journalOf(n: number): { readonly root: string; readonly lines: Uint8Array } {
  const tree = new MerkleTree();
  const run = { arrivals: 0, createdAt: 1, definition: "order", generation: 0, id: `order-${n}`, kind: "workflow" };
  const row = { ...run, lostTurns: 0, priority: 0, read: 0, status: "completed", tags: [], unread: 0, version: 1 };
  const lines = [canonicalJson({ form: "hash-only", reprise: "bundle/1", run: row })];
  for (let seq = 1; seq <= ENTRIES; seq += 1) {
    const data = seq.toString(16).padStart(64, "0");
    const entry = {
      at: 1_763_280_000_000 + seq,
      command: `Operation(${seq})`,
      data,
      seq,
      size: 140,
      type: "OperationCompleted",
    };
    const line = canonicalJson(entry);
    tree.push(leafHash(line));
    lines.push(line);
  }
  return { root: tree.root(), lines: journalFile(lines) };
}

async function overCarrier(folder: string, carrier: Carrier, count: number): Promise<Measured> {
  const site = logOf(count);
  const dir = fresh(folder);
  using home = openHome(dir);
  home.admit(site.key.vkey, { own: true });
  for (let at = 0; at < count; at += BATCH) home.ingest(site.batchFrom(at, Math.min(at + BATCH, count)));
  const rules = [{ to: ["*"], payloads: "full" }] as const;
  const pushedAt = performance.now();
  await pushTo(home, carrier, { reader: "*", rules, own: site.origin });
  const pushPerSecond = (count / (performance.now() - pushedAt)) * 1_000;
  using reader = openHome(fresh(folder));
  reader.admit(site.key.vkey);
  let log: PulledLog | undefined;
  const time = await timed(async () => {
    [log] = await pullFrom(reader, carrier);
  });
  if (log?.records !== count) throw new Error(`Expected ${count} records, got ${log?.records} (${log?.status}).`);
  const paths: string[] = [];
  for (let tile = 0; tile * 256 < count; tile += 1) {
    const width = Math.min(256, count - tile * 256);
    paths.push(`${site.origin}/tile/entries/${String(tile).padStart(3, "0")}${width < 256 ? `.p/${width}` : ""}`);
  }
  const rawAt = performance.now();
  for (const path of paths) await carrier.get(path);
  const rawPerSecond = (count / (performance.now() - rawAt)) * 1_000;
  return measured(count, time, rawPerSecond, { pushPerSecond });
}

/** A private nats-server with JetStream. */
class NatsProcess implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** Undefined: it is not installed. */
  static async start(folder: string): Promise<NatsProcess | undefined> {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    listener.close();
    const args = ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", folder];
    const child = spawn("nats-server", args, { stdio: ["ignore", "ignore", "pipe"] });
    const isReady = await new Promise<boolean>((resolve) => {
      child.once("error", () => resolve(false));
      child.stderr.on("data", (chunk) => {
        if (String(chunk).includes("Server is ready")) resolve(true);
      });
    });
    return isReady ? new NatsProcess(`nats://127.0.0.1:${port}`, child) : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }
}

const TOKEN = "bench-0123456789abcdef";

/** A home that is served, and one that pulls from it, in one process. */
class HttpPair implements AsyncDisposable {
  readonly reader: Home;
  readonly #home: Home;
  readonly #state: SyncState;
  readonly #carrier: Carrier;
  readonly #origin: string;
  readonly #url: string;
  readonly #close: () => Promise<void>;
  readonly #changed: () => void;
  #waiting: (() => void) | undefined;
  requests = 0;

  private constructor(parts: {
    readonly home: Home;
    readonly reader: Home;
    readonly state: SyncState;
    readonly carrier: Carrier;
    readonly origin: string;
    readonly url: string;
    readonly close: () => Promise<void>;
    readonly changed: () => void;
  }) {
    this.#home = parts.home;
    this.reader = parts.reader;
    this.#state = parts.state;
    this.#carrier = parts.carrier;
    this.#origin = parts.origin;
    this.#url = parts.url;
    this.#close = parts.close;
    this.#changed = parts.changed;
  }

  static async open(folder: string, site: TestOrigin): Promise<HttpPair> {
    const [home, dir] = [openHome(fresh(folder)), fresh(folder)];
    home.admit(site.key.vkey, { own: true });
    home.ingest(site.batch(home));
    const reader = openHome(dir);
    reader.admit(site.key.vkey);
    const peers = [{ name: "reader", tokenSha256: tokenDigest(TOKEN), pull: ["*"], push: false, grants: [] }];
    const handler = createFederationHandler(home, { peers: () => peers, own: site.origin });
    const listeners: ((waits: boolean) => void)[] = [];
    const counting = Object.assign(
      (request: Request) => {
        for (const listener of listeners) listener(new URL(request.url).searchParams.has("wait"));
        return handler(request);
      },
      { close: () => handler.close() },
    );
    const listener = await listen(counting, { timers: systemTimers });
    const carrier = await openCarrier(listener.url, { ...PORTS, token: TOKEN });
    const state = SyncState.open(dir);
    const close = (): Promise<void> => listener.close();
    const pair = new HttpPair({
      home,
      reader,
      state,
      carrier,
      origin: site.origin,
      url: listener.url,
      close,
      changed: () => handler.changed(),
    });
    listeners.push((waits) => pair.onRequest(waits));
    return pair;
  }

  async pull(waitMs?: number): Promise<void> {
    await pullFrom(this.reader, this.#carrier, { state: this.#state, ...(waitMs !== undefined && { waitMs }) });
  }

  /** Resolves when the server has the request that waits. */
  isWaiting(): Promise<void> {
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  onRequest(waits: boolean): void {
    this.requests += 1;
    if (waits) systemTimers.soon(() => this.#waiting?.());
  }

  take(site: TestOrigin): void {
    this.#home.ingest(site.batch(this.#home));
    this.#changed();
  }

  async fetchHead(): Promise<void> {
    const response = await fetch(`${this.#url}/${this.#origin}/checkpoint`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    await response.arrayBuffer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#carrier.close();
    await this.#close();
    this.#state.close();
    this.reader.close();
    this.#home.close();
  }
}

const ROUNDS = 4;

/** The same runs on a store that notes their ends and on one that does not, in turns; then the site logs them all. */
async function onAndOff(folder: string, runs: number, count: number): Promise<Measured> {
  const dirs = { on: fresh(folder), off: fresh(folder) };
  for (const dir of Object.values(dirs)) mkdirSync(dir);
  const store = `sqlite:${dirs.on}/a.db`;
  await using site = await createFederation({
    store,
    home: `${dirs.on}/home`,
    name: "bench",
    sync: "manual",
    logger: false,
  });
  await site.setOn(true);
  await using on = await createEngine({ store, definitions, logger: false });
  await using off = await createEngine({ store: `sqlite:${dirs.off}/a.db`, definitions, logger: false });
  const total = { on: { elapsedMs: 0, cpuMs: 0 }, off: { elapsedMs: 0, cpuMs: 0 } };
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const name of round % 2 === 0 ? (["on", "off"] as const) : (["off", "on"] as const)) {
      const engine = name === "on" ? on : off;
      const { elapsedMs, cpuMs } = await timed(() =>
        startRuns(engine as unknown as Client<Definition>, Math.ceil(runs / ROUNDS), count),
      );
      // The first round warms up.
      if (round === 0) await site.sync();
      else {
        total[name].elapsedMs += elapsedMs;
        total[name].cpuMs += cpuMs;
      }
    }
  const logged = await timed(async () => void (await site.sync()));
  const steps = runs * count;
  const cpuUsPerStep = (total.on.cpuMs / steps) * 1_000;
  const offCpuUsPerStep = (total.off.cpuMs / steps) * 1_000;
  return {
    runs,
    steps,
    elapsedMs: total.on.elapsedMs,
    latenciesMs: [],
    extra: {
      perSecond: (steps / total.on.elapsedMs) * 1_000,
      offPerSecond: (steps / total.off.elapsedMs) * 1_000,
      ofOff: total.off.elapsedMs / total.on.elapsedMs,
      cpuUsPerStep,
      offCpuUsPerStep,
      ofOffCpu: offCpuUsPerStep / cpuUsPerStep,
      logCpuUsPerRun: (logged.cpuMs / runs) * 1_000,
    },
  };
}

const CONCURRENT = 200;

async function startRuns(engine: Client<Definition>, runs: number, count: number): Promise<void> {
  for (let done = 0; done < runs; done += CONCURRENT)
    await Promise.all(
      Array.from({ length: Math.min(CONCURRENT, runs - done) }, async () =>
        (await engine.start(steps as never, { count, waitMs: 0 } as never)).result(),
      ),
    );
}

export const fedWorkload: Workload = {
  name: "fed",
  variants: Object.keys(STAGES),
  warmUp: 0.05,
  hasNoRate: true,
  withoutWorker: true,
  run(rig, plan) {
    const stage = STAGES[plan.variant];
    if (stage === undefined) throw new Error(`Expected one of ${Object.keys(STAGES).join(", ")}.`);
    return stage(rig.database.folder, plan);
  },
};
