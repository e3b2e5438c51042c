// peers: the same workloads with Reprise and with other engines, in turns, on the same database server.
//
// The peers have their own packages in bench/peers, installed on demand and with pinned versions. A peer that cannot be installed or does not
// finish is reported with the reason; it has no figures. A measurement is a process group of its own: whatever a peer has started ends with
// it, also when this process is interrupted.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { loadContender, PEERS_FOLDER } from "./peer-contender.ts";
import { PEER_WORKLOADS, type PeerPlan, type PeerResult, type PeerWorkload } from "./peer-process.ts";
import { alignedTableOf } from "./print.ts";
import { startServer, type Server } from "./server.ts";
import { percentile, round } from "./statistics.ts";

type PeerStore = "sqlite" | "postgres" | "own server";

interface Entrant {
  readonly name: string;
  /** The package whose version is printed. */
  readonly package?: string;
  readonly store: PeerStore;
  readonly workloads: readonly PeerWorkload[];
}

const ENTRANTS: readonly Entrant[] = [
  { name: "reprise", store: "sqlite", workloads: PEER_WORKLOADS },
  { name: "openworkflow", package: "openworkflow", store: "sqlite", workloads: ["steps", "latency", "runs"] },
  { name: "langgraph", package: "@langchain/langgraph", store: "sqlite", workloads: ["graph"] },
  { name: "reprise", store: "postgres", workloads: PEER_WORKLOADS },
  { name: "dbos", package: "@dbos-inc/dbos-sdk", store: "postgres", workloads: ["steps", "latency", "runs", "queue"] },
  { name: "openworkflow", package: "openworkflow", store: "postgres", workloads: ["steps", "latency", "runs"] },
  { name: "langgraph", package: "@langchain/langgraph", store: "postgres", workloads: ["graph"] },
  { name: "pg-boss", package: "pg-boss", store: "postgres", workloads: ["queue"] },
  {
    name: "temporal",
    package: "@temporalio/worker",
    store: "postgres",
    workloads: ["steps", "latency", "runs", "queue"],
  },
  {
    name: "restate",
    package: "@restatedev/restate-server",
    store: "own server",
    workloads: ["steps", "latency", "runs", "queue"],
  },
];

const CONTENDERS = [...new Set(ENTRANTS.map(({ name }) => name))];

export interface PeerLine {
  readonly workload: PeerWorkload;
  readonly contender: string;
  readonly version: string;
  readonly store: PeerStore;
  /** Medians of the rounds. */
  readonly perSecond: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly cpuUs: number | null;
  /**
   * Reprise's rate as a multiple of the contender's, on the same store; on PostgreSQL for a peer with its own storage. `latency`: the
   * contender's `p50Ms` as a multiple of Reprise's. The median of the rounds, each compared with Reprise in the same round.
   */
  readonly repriseTimes: number | null;
  /** The CPU time of the contender as a multiple of Reprise's, likewise. */
  readonly cpuOfReprise: number | null;
  readonly rounds: number;
  /** Why there are no figures. */
  readonly failed?: string;
}

export interface PeersPlan {
  /** Workloads and contenders, separated by commas. Reprise is always measured too. */
  readonly only: string | undefined;
  readonly scale: number;
  readonly rounds: number;
}

/** A measurement that takes longer has failed. */
const LONGEST_MS = 240_000;

export async function* comparePeers({ only, scale, rounds }: PeersPlan): AsyncGenerator<PeerLine> {
  const { workloads, chosen } = chosenBy(only);
  endWithInterrupts();
  install();
  const missing = await prepareAll(new Set(chosen.map(({ name }) => name)));
  const server = await startServer("postgres");
  for (const workload of workloads) {
    const entrants = chosen.filter((entrant) => entrant.workloads.includes(workload));
    const results = new Map<Entrant, (PeerResult | undefined)[]>(entrants.map((entrant) => [entrant, []]));
    const failures = new Map<Entrant, string>();
    for (const entrant of entrants) {
      const reason = missing.get(entrant.name);
      if (reason === undefined) continue;
      failures.set(entrant, reason);
      console.error(`${workload}: ${entrant.name} on ${entrant.store} is skipped: ${reason}`);
    }
    for (let turn = 0; turn < rounds; turn += 1)
      // Every second round in the opposite order, so that no contender is always measured right after the same other one.
      for (const entrant of turn % 2 === 0 ? entrants : entrants.toReversed()) {
        if (failures.has(entrant)) continue;
        console.error(`${workload}, round ${turn + 1} of ${rounds}: ${entrant.name} on ${entrant.store}`);
        try {
          results.get(entrant)![turn] = await measureEntrant(entrant, workload, scale, server);
        } catch (error) {
          failures.set(entrant, firstLineOf(error));
          console.error(`  failed: ${firstLineOf(error)}`);
        }
      }
    for (const entrant of entrants) {
      const storeOfBase = entrant.store === "own server" ? "postgres" : entrant.store;
      const base = entrants.find(({ name, store }) => name === "reprise" && store === storeOfBase);
      yield lineOf(workload, entrant, results.get(entrant)!, results.get(base!) ?? [], failures.get(entrant));
    }
  }
}

function chosenBy(only: string | undefined): { workloads: readonly PeerWorkload[]; chosen: readonly Entrant[] } {
  const names = only?.split(",") ?? [];
  const workloads = PEER_WORKLOADS.filter((workload) => names.includes(workload));
  const contenders = CONTENDERS.filter((name) => names.includes(name));
  const unknown = names.filter((name) => ![...PEER_WORKLOADS, ...CONTENDERS].includes(name));
  if (unknown.length > 0)
    throw new Error(
      `--only: expected some of ${PEER_WORKLOADS.join(", ")}, or of ${CONTENDERS.join(", ")}; got ${unknown.join(", ")}.`,
    );
  const peers = ENTRANTS.filter(({ name }) => contenders.length === 0 || contenders.includes(name));
  // Only the stores and the workloads that the chosen peers have need Reprise's figures.
  const bases = ENTRANTS.filter(
    ({ name, store }) =>
      name === "reprise" &&
      peers.some((peer) => peer.store === store || (peer.store === "own server" && store === "postgres")),
  );
  return {
    workloads: (workloads.length === 0 ? PEER_WORKLOADS : workloads).filter((workload) =>
      peers.some((peer) => peer.workloads.includes(workload)),
    ),
    chosen: [...new Set([...bases, ...peers])],
  };
}

function lineOf(
  workload: PeerWorkload,
  entrant: Entrant,
  results: readonly (PeerResult | undefined)[],
  base: readonly (PeerResult | undefined)[],
  failed: string | undefined,
): PeerLine {
  type Figure = "perSecond" | "p50Ms" | "p99Ms" | "cpuUs";
  const medianOf = (values: readonly (number | null | undefined)[]): number | null => {
    const known = values.filter((value) => typeof value === "number");
    return known.length === 0 ? null : round(percentile(known, 0.5));
  };
  const median = (name: Figure): number | null => medianOf(results.map((each) => each?.[name]));
  /** `over / under` in each round. */
  const ratio = (
    name: Figure,
    over: readonly (PeerResult | undefined)[],
    under: readonly (PeerResult | undefined)[],
  ): number | null =>
    medianOf(
      over.map((each, turn) => {
        const [above, below] = [each?.[name], under[turn]?.[name]];
        return typeof above === "number" && typeof below === "number" && below > 0 ? above / below : null;
      }),
    );
  return {
    workload,
    contender: entrant.name,
    version: versionOf(entrant),
    store: entrant.store,
    perSecond: median("perSecond"),
    p50Ms: median("p50Ms"),
    p99Ms: median("p99Ms"),
    cpuUs: median("cpuUs"),
    repriseTimes: workload === "latency" ? ratio("p50Ms", results, base) : ratio("perSecond", base, results),
    cpuOfReprise: ratio("cpuUs", results, base),
    rounds: results.filter((each) => each !== undefined).length,
    ...(failed !== undefined && { failed }),
  };
}

/** A new process and a new database for every measurement. */
async function measureEntrant(
  { name, store }: Entrant,
  workload: PeerWorkload,
  scale: number,
  server: Server,
): Promise<PeerResult> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-peers-"));
  const database = store === "postgres" ? await createDatabase(server.url) : undefined;
  const file = new URL(import.meta.url.endsWith(".ts") ? "peer-process.ts" : "peer-process.js", import.meta.url);
  const plan: PeerPlan = {
    contender: name,
    workload,
    scale,
    folder,
    url: database?.url ?? join(folder, "peer.db"),
    ...(database !== undefined && { serverPid: server.pid }),
  };
  try {
    const stdout = await runInGroup([...process.execArgv, fileURLToPath(file), JSON.stringify(plan)], folder);
    // Some peers print lines of their own.
    const line = stdout.split("\n").findLast((each) => each.startsWith('{"perSecond"'));
    if (line === undefined) throw new Error(`${name} printed no result`);
    return JSON.parse(line) as PeerResult;
  } finally {
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The process groups and folders of measurements under way. */
const underWay = new Map<number, string>();

/** Runs Node in its own process group; all of the group has ended when this returns. */
async function runInGroup(args: readonly string[], folder: string): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const group = child.pid!;
  underWay.set(group, folder);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    endGroup(group);
  }, LONGEST_MS);
  try {
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    if (isLate) throw new Error(`no result within ${LONGEST_MS / 1_000} s`);
    if (code !== 0) throw Object.assign(new Error(`exit code ${String(code)}`), { stderr });
    return stdout;
  } finally {
    clearTimeout(timer);
    endGroup(group);
    underWay.delete(group);
  }
}

function endGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Ctrl-C reaches only the foreground group, so this process ends the others. The server of the database ends with this process. */
function endWithInterrupts(): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => {
      for (const [group, folder] of underWay) {
        endGroup(group);
        rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      }
      process.exit(code);
    });
}

let databases = 0;

async function createDatabase(address: string): Promise<{ readonly url: string; drop(): Promise<void> }> {
  const { default: pg } = await import("pg");
  const name = `peer_${(databases += 1)}`;
  const query = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: address });
    await client.connect();
    await client.query(text);
    await client.end();
  };
  await query(`create database ${name}`);
  const url = new URL(address);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => query(`drop database ${name} with (force)`) };
}

/** The peers whose packages cannot be loaded or whose server cannot be built, with the reason. */
async function prepareAll(names: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const missing = new Map<string, string>();
  for (const name of names) {
    try {
      const contender = await loadContender(name);
      await contender.prepare?.();
    } catch (error) {
      missing.set(name, firstLineOf(error));
    }
  }
  return missing;
}

function firstLineOf(error: unknown): string {
  const { message, stderr } = error as { readonly message?: string; readonly stderr?: string };
  const lines = stripVTControlCharacters(stderr || message || String(error)).split("\n");
  // A thrown error is printed after its source line; servers print lines with a level.
  return (
    lines.find((line) => /^\s*\w*Error\b.*: /.test(line)) ??
    lines.findLast((line) => /error/i.test(line)) ??
    lines[0]!
  ).trim();
}

function versionOf(entrant: Entrant): string {
  const manifest = entrant.package === undefined ? resolve("package.json") : join(PEERS_FOLDER, "package.json");
  const { version, optionalDependencies = {} } = JSON.parse(readFileSync(manifest, "utf8")) as {
    readonly version?: string;
    readonly optionalDependencies?: Readonly<Record<string, string>>;
  };
  return (entrant.package === undefined ? version : optionalDependencies[entrant.package]) ?? "unknown";
}

/** Once for every lock file. All packages are optional: one that does not exist for this platform does not stop the others. */
function install(): void {
  const lock = readFileSync(join(PEERS_FOLDER, "package-lock.json"), "utf8");
  const mark = join(PEERS_FOLDER, "node_modules", ".installed-lock.json");
  if (existsSync(mark) && readFileSync(mark, "utf8") === lock) return;
  console.error("installing the peers into bench/peers …");
  const npm = process.env["npm_execpath"];
  const [command, args] = npm === undefined ? ["npm", []] : [process.execPath, [npm]];
  const { status } = spawnSync(command, [...args, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], {
    cwd: PEERS_FOLDER,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0)
    throw new Error(`npm ci in bench/peers failed with exit code ${String(status)}; see its output above.`);
  writeFileSync(mark, lock);
}

const COLUMNS: readonly (keyof PeerLine)[] = [
  "workload",
  "contender",
  "version",
  "store",
  "perSecond",
  "p50Ms",
  "p99Ms",
  "cpuUs",
  "repriseTimes",
  "cpuOfReprise",
  "failed",
];

export function peersTableOf(lines: readonly PeerLine[]): string {
  return alignedTableOf(
    COLUMNS,
    lines.map((line) => ({ ...line })),
    4,
  );
}
