// Simulate: one seed: processes on one store, a swarm of faults, then a quiet phase, then the checks.
//
// simulate.M1. First faults, for some seconds of virtual time, while clients send requests. Then none: every process restarts, and
//   every run must end within a bounded number of steps.
// simulate.M2. The same options give the same events (`digest`).

import type { Random } from "../../src/base/index.ts";
import { hasEnded } from "../../src/kernel/index.ts";
import type { Isolation } from "./store/sim-database.ts";
import type { RandomSource } from "../replay/random-source.ts";
import { stream } from "./random.ts";
import { endsOf, journalProblems, Ledger, Outside, readAll, strangers } from "./checks.ts";
import { Client } from "./client.ts";
import { Faults, type Fault } from "./faults.ts";
import { between, type Part, type PartHost } from "./part.ts";
import { graphOutcome } from "./parts/graphs.ts";
import { LATER_SHARES, partOf, PARTS } from "./parts/index.ts";
import { SimProcess } from "./process.ts";
import { rollBack } from "./rollbacks.ts";
import { Scheduler, START_MS, Stuck, type EventLoop } from "./scheduler.ts";
import { openRemoteStores, type RemoteHost } from "./remote-stores.ts";
import { openSqliteStores } from "./sqlite-stores.ts";
import type { SimStores, StoreName, StoresHost } from "./stores.ts";

export interface SimOptions {
  readonly seed: number;
  readonly store: StoreName;
  /** The isolation of the simulated database. */
  readonly mode?: Isolation | undefined;
  /** Parts of the workload by name; default: one to three at random. */
  readonly scenario?: readonly string[] | undefined;
  readonly faults?: readonly Fault[] | undefined;
  /** Kinds of faults that every seed has. */
  readonly always?: readonly Fault[] | undefined;
  /** Only these faults may fire. */
  readonly keep?: ReadonlySet<string> | undefined;
  readonly workers?: number | undefined;
  /** The size, at most 1; default: random. */
  readonly scale?: number | undefined;
  readonly wrap?: StoresHost["wrap"];
  readonly wrapBackend?: RemoteHost["wrapBackend"];
  /** The results of graphs in a world without faults; computed if not given. */
  readonly expected?: ReadonlyMap<string, string> | undefined;
}

export interface SimReport {
  readonly seed: number;
  /** The violated invariants. */
  readonly problems: readonly string[];
  readonly digest: number;
  readonly steps: number;
  readonly virtualMs: number;
  readonly commits: number;
  readonly runs: number;
  readonly workers: number;
  readonly parts: readonly string[];
  readonly features: readonly string[];
  readonly fired: readonly string[];
  /** The number of rollbacks, and of the runs lost by them. */
  readonly rollbacks: number;
  readonly vanished: number;
  /** How graphs ended, by run. */
  readonly outcomes: ReadonlyMap<string, string>;
  readonly logs: ReadonlyMap<string, readonly string[]>;
}

const MAX_STEPS = 400_000;
const TICK_MS = 200;
/** As in src/worker/worker-lease.ts. */
const BEATS_PER_LEASE = 3;
const SHOWN_ENTRIES = 50;
/** The destination of messages. */
const DESTINATIONS = ["outside", "mail", "somewhere"];
/** simulate.M1. How long runs may take to end after the last fault. */
const QUIET_MS = 180_000;

class World {
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly ledger: Ledger;
  readonly outside = new Outside();
  readonly problems: string[] = [];
  readonly outcomes = new Map<string, string>();
  readonly loop: EventLoop;
  readonly #options: SimOptions & { readonly scenario: readonly string[] };
  readonly #chance: RandomSource;
  readonly workers: number;
  readonly #leaseMs: number;
  parts: readonly Part[] = [];
  runs = 0;
  #processes: readonly SimProcess[] = [];
  #isOver = false;
  discard = (): void => {};
  rollbacks = 0;
  vanished = 0;

  constructor(options: SimOptions & { readonly scenario: readonly string[] }) {
    const { seed } = options;
    this.#options = options;
    this.ledger = new Ledger(options.store === "sqlite");
    this.#chance = stream(seed, "world");
    this.scheduler = new Scheduler(stream(seed, "schedule"));
    this.faults = new Faults(seed, { kinds: options.faults, always: options.always, keep: options.keep });
    this.loop = this.scheduler.createLoop("world");
    const drawn = between(this.#chance, 1, 3);
    this.workers = options.workers ?? drawn;
    this.#leaseMs = this.#chance.pick([600, 1_500, 3_000]);
  }

  /** Runs the whole simulation. */
  async live(): Promise<void> {
    const { seed } = this.#options;
    const chance = this.#chance;
    const stores = await this.#openStores();
    this.discard = () => stores.discard();
    this.parts = this.#drawParts(stores);
    const concurrency = chance.pick([1, 2, 16]);
    const host = {
      seed,
      scheduler: this.scheduler,
      program: {
        definitions: (machine: Parameters<Part["definitions"]>[0]) =>
          this.parts.flatMap((part) => part.definitions(machine)),
        outbox: () => Object.fromEntries(DESTINATIONS.map((name) => [name, this.outside.deliver])),
      },
      leaseMs: this.#leaseMs,
      concurrency,
      workMs: (work: RandomSource) => (work.happens(0.3) ? 0 : work.unit() * (work.happens(0.2) ? 1_000 : 100)),
      open: stores.open,
      warned: (process: string, message: string) => this.scheduler.log(process, `warns: ${message.slice(0, 120)}`),
    };
    this.#processes = Array.from({ length: this.workers }, (_, n) => new SimProcess(host, `p${n + 1}`));
    const client = new Client(this.scheduler.createLoop("client"), stream(seed, "client"), this.#processes);
    client.isSettled = !this.faults.intensity.has("rollback");
    for (const process of this.#processes) void this.#supervise(process);
    void this.#makeTrouble(stores, client);
    const driven = Promise.all(this.parts.map((part) => part.drive(client)));
    driven.catch(() => {});
    await this.loop.sleep(between(chance, 2_000, 10_000));
    this.#calmDown();
    client.isSettled = true;
    if (this.rollbacks > 0) {
      await stores.reopen();
      // Time for paused processes to detect what others have detected.
      await this.loop.sleep(2 * this.#leaseMs);
    }
    await driven;
    await client.repeated();
    await this.#comeToRest(stores, client);
    await this.#judge(stores, client);
    this.#isOver = true;
    for (const process of this.#processes) process.kill("the world ends");
    await stores.close();
  }

  #drawParts(stores: SimStores): readonly Part[] {
    const { seed, scenario } = this.#options;
    // Small worlds find most bugs that large ones find, and more of them fit into the same time.
    const scale = this.#options.scale ?? stream(seed, "scale").pick([0.3, 0.5, 1]);
    return scenario.map((name) => {
      const host: PartHost = {
        chance: stream(seed, `part ${name}`),
        database: stores.database,
        kind: stores.kind,
        scale,
        expected: this.#options.expected,
      };
      return partOf(name)(host);
    });
  }

  #openStores(): Promise<SimStores> {
    const { seed, store, mode = "rc", wrap, wrapBackend } = this.#options;
    const chance = stream(seed, "store");
    const host: StoresHost = {
      loop: this.loop,
      random: storeRandom(chance),
      faults: this.faults,
      latency: stream(seed, "latency"),
      witness: this.ledger,
      pause: (loop) => this.#pause(loop),
      wrap,
    };
    if (store === "sqlite") return openSqliteStores(host);
    return openRemoteStores({ ...host, isolation: mode, chance, wrapBackend });
  }

  /** Restarts a process whenever it has ended. */
  async #supervise(process: SimProcess): Promise<void> {
    const chance = stream(this.#options.seed, `supervisor ${process.name}`);
    for (;;) {
      await process.start();
      await process.gone();
      if (this.#isOver) return;
      await this.loop.sleep(this.faults.isQuiet ? 10 : chance.below(chance.happens(0.2) ? 3_000 : 300));
    }
  }

  /** Kills, pauses and closes processes, and changes clocks. */
  async #makeTrouble(stores: SimStores, client: Client): Promise<void> {
    const { faults, loop } = this;
    while (!faults.isQuiet) {
      await loop.sleep(TICK_MS);
      const one = (kind: Fault): SimProcess => faults.draw(kind).pick(this.#processes);
      if (faults.happens("kill", 0.15)) one("kill").kill("killed");
      if (faults.happens("drain", 0.1)) void one("drain").close();
      if (faults.happens("pause", 0.15)) this.#pause(one("pause").loop);
      if (faults.happens("clock", 0.15)) this.#jump(faults.draw("clock"));
      if (faults.happens("rollback", 0.2)) await this.#rollBack(stores, client);
    }
  }

  async #rollBack(stores: SimStores, client: Client): Promise<void> {
    const { scheduler, loop, ledger, faults } = this;
    const leastMs = Math.ceil(this.#leaseMs / BEATS_PER_LEASE);
    const gone = await rollBack({ scheduler, loop, stores, ledger, client, leastMs }, faults.draw("rollback"));
    if (gone === undefined) return;
    this.rollbacks += 1;
    this.vanished += gone;
  }

  /** As `SIGSTOP` does, and later `SIGCONT`. */
  #pause(loop: EventLoop | undefined): void {
    const ms = this.faults.draw("pause").unit() * 3 * this.#leaseMs;
    if (loop === undefined || loop.isPaused) return;
    loop.isPaused = true;
    loop.log(`is paused for ${Math.round(ms)}`);
    this.loop.timers.set(ms, () => this.#resume(loop));
  }

  #resume(loop: EventLoop): void {
    if (!loop.isPaused) return;
    loop.isPaused = false;
    if (!loop.isDead) loop.log("resumes");
  }

  /** The clock of a machine, or of the database. */
  #jump(chance: RandomSource): void {
    const machine = chance.pick([undefined, ...this.#processes]);
    const ms = Math.round((chance.unit() - 0.5) * chance.pick([200, 5_000, 7_200_000]));
    if (machine !== undefined) return machine.setClock(ms);
    this.loop.skewMs += ms;
    this.loop.log(`clock jumps by ${ms}`);
  }

  /** simulate.M1 */
  #calmDown(): void {
    this.loop.log("quiet from now on");
    this.faults.isQuiet = true;
    for (const { loop } of this.#processes) if (loop !== undefined) this.#resume(loop);
  }

  async #comeToRest({ calm }: SimStores, client: Client): Promise<void> {
    const isWaitedFor = (): boolean => this.parts.some((part) => part.isWaitedFor?.() === true);
    for (const until = this.scheduler.elapsedMs + QUIET_MS; this.scheduler.elapsedMs < until;) {
      const live = [...(await readAll(calm)).keys()].filter(({ status }) => !hasEnded(status));
      const blocked = live.filter(({ status }) => status === "blocked");
      if (live.some(({ status }) => status === "determinism_violation")) return;
      // Lists have no evidence.
      for (const { id, generation } of blocked)
        if (!(await calm.findRun(id, generation))?.evidence?.includes("takeovers")) return;
      // Blocked after too many takeovers: an operator resumes it.
      for (const { definition, id } of blocked)
        await client
          .ask(`resume ${id}`, async (core) => (await core.get(definition as never, id).resume(), true))
          .catch(() => {});
      if (live.length === 0 && (await calm.info()).outbox.pending === 0 && !isWaitedFor()) return;
      await this.loop.sleep(live.length === 0 && !isWaitedFor() ? 100 : 500);
    }
  }

  async #judge(stores: SimStores, client: Client): Promise<void> {
    const { calm } = stores;
    const all = await readAll(calm);
    this.runs = all.size;
    const journals = new Map([...all].map(([{ run }, journal]) => [run, journal]));
    this.problems.push(
      ...journalProblems(all),
      ...strangers(all, client.asked),
      ...this.ledger.stale,
      ...this.ledger.missingIn(journals),
      ...this.ledger.givenTwice(all.keys()),
      ...this.ledger.unnoticed(),
    );
    for (const { invariant, run, message } of await calm.check())
      this.problems.push(`${invariant}: ${run ?? ""} ${message}`);
    this.problems.push(...this.outside.problems(journals.values(), this.rollbacks > 0));
    const ends = endsOf(all);
    for (const [id, end] of ends) if (end.record.kind === "graph") this.outcomes.set(id, graphOutcome(end));
    for (const part of this.parts) this.problems.push(...part.judge(ends));
    for (const part of this.parts)
      for await (const problem of part.audit?.(calm, ends, this.rollbacks) ?? []) this.problems.push(problem);
    if (this.problems.length > 0) return this.#tellLive(stores, all);
    for (const { id, definition, generation } of all.keys()) {
      const verdict = await client.ask(`verify ${id}`, (core) =>
        core.get(definition as never, id).verify({ generation }),
      );
      if (verdict.status !== "same") this.problems.push(`I25 run ${id}: ${JSON.stringify(verdict).slice(0, 300)}`);
    }
    this.scheduler.log("end", [...all.keys()].map(({ id, chain, status }) => `${id} ${chain} ${status}`).join());
  }

  /** Logs the runs that have not ended, or ended wrongly, for debugging. */
  async #tellLive({ calm }: SimStores, all: Awaited<ReturnType<typeof readAll>>): Promise<void> {
    for (const { worker, name, until } of await calm.listWorkers())
      this.scheduler.log("store", `worker ${worker} ${name} until ${until - START_MS}`);
    for (const [{ run, id, status, read, arrivals }, journal] of all) {
      if (hasEnded(status) && !this.problems.some((problem) => problem.includes(` ${id} `))) continue;
      const [pulse] = await calm.readProgress([run]);
      this.scheduler.log("store", `${id} ${status} token ${pulse?.token ?? "none"} read ${read} of ${arrivals}`);
      for (const { seq, type, command, data } of journal.slice(0, SHOWN_ENTRIES))
        this.scheduler.log(id, `${seq} ${type} ${command} ${data.slice(0, 80)}`);
    }
  }
}

export async function simulate(options: SimOptions): Promise<SimReport> {
  const { scenario = drawScenario(options.seed), expected } = options;
  if (!scenario.includes("graphs") || expected !== undefined) return simulateOnce({ ...options, scenario });
  const quiet = await simulateOnce({
    ...options,
    scenario: ["graphs"],
    faults: [],
    always: [],
    workers: 1,
    wrap: undefined,
    wrapBackend: undefined,
  });
  return quiet.problems.length > 0 ? quiet : simulateOnce({ ...options, scenario, expected: quiet.outcomes });
}

/** One to three parts of a workload, and sometimes one that was added later: other seeds are the worlds they were. */
function drawScenario(seed: number): readonly string[] {
  const chance = stream(seed, "workload");
  const names = [...PARTS.keys()];
  const drawn = new Set(Array.from({ length: between(chance, 1, 3) }, () => chance.pick(names)));
  for (const [name, share] of LATER_SHARES) if (stream(seed, `later ${name}`).happens(share)) drawn.add(name);
  return [...drawn];
}

async function simulateOnce(options: SimOptions & { readonly scenario: readonly string[] }): Promise<SimReport> {
  const world = new World(options);
  const { scheduler } = world;
  try {
    await scheduler.run(world.live(), MAX_STEPS);
  } catch (error) {
    world.problems.push(
      error instanceof Stuck ? `liveness: ${error.message}` : `crashed: ${(error as Error).stack ?? String(error)}`,
    );
  } finally {
    world.discard();
  }
  return {
    seed: options.seed,
    problems: world.problems,
    digest: scheduler.digest,
    steps: scheduler.steps,
    virtualMs: Math.round(scheduler.elapsedMs),
    commits: world.ledger.commits,
    runs: world.runs,
    workers: world.workers,
    parts: world.parts.map(({ name }) => name),
    features: [...new Set(world.parts.flatMap(({ features }) => features))],
    fired: world.faults.fired,
    rollbacks: world.rollbacks,
    vanished: world.vanished,
    outcomes: world.outcomes,
    logs: scheduler.logs,
  };
}

function storeRandom(chance: RandomSource): Random {
  const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => chance.below(256));
  const token = (): string => Buffer.from(bytes(16)).toString("hex");
  return { bytes, token, id: token };
}
