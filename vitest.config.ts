import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// The package refers to itself by name ("reprise"); this condition makes that mean the sources, without a build.
const conditions = ["reprise-source"];

// "import" must not be among them: vitest hands them to its processes, where `require` would find modules for `import`.
const resolved = [...conditions, "node"];

const EVERYTHING = ["src/**/*.test.ts", "test/**/*.test.ts"];

/** Minutes each. `npm run faults` runs the same rigs on every store; the test suite runs them on one. */
const BY_HAND = ["test/slow/faults/{mysql,sqlite}.test.ts"];

/** `npm run check` excludes the slow files. A project ignores the option `--exclude`. */
const EXCLUDED = process.env["REPRISE_EXCLUDE"]?.split(",") ?? [];

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Tests written for SQLite that also run on every other store (test/cross-store). */
const CROSS_STORE = [
  "test/engine/{void-commits,deferred-starts,branches,cancelling,children,child-messages,deadlines}.test.ts",
  "test/engine/{early-messages,evaluate,fork-cuts,fork-models,generations,leases,outbox,pausing,queues,attempt-retries,run-retry,schedules}.test.ts",
  "test/engine/{budgets,keyed-promises,memo,open-promises,settling-promises,migrating}.test.ts",
  "test/engine/{signals,stopped-runs,streams,task-cancel,terminating,updates,waiting,stream-resets,retention}.test.ts",
  "test/flow/{acceptance,blocked-flows,control,flows,forks,fork-spreads,migrating,retry,verify,keys}.test.ts",
  "test/graph/{commits,composition,joins,nodes,recorded-io,replay,retry,time-travel}.test.ts",
  "test/receipts/claims.test.ts",
  "test/ai/{budgets,crashes}.test.ts",
  "test/{a2a/a2a,server/mcp-tasks}.test.ts",
];

/** The subset that runs on real servers, which are slow: one file for each way in which time, order and crashes matter. */
const ON_SERVERS = [
  "test/engine/{budgets,early-messages,evaluate,signals,stopped-runs,task-cancel,waiting,stream-resets,settling-promises,memo,forks}.test.ts",
  "test/flow/{acceptance,retry,keys,forks,fork-spreads,migrating}.test.ts",
  "test/graph/{commits,recorded-io}.test.ts",
  "test/receipts/claims.test.ts",
  "test/ai/crashes.test.ts",
  "test/{a2a/a2a,server/mcp-tasks}.test.ts",
];

/** The slowest files run first: a slow file at the end would leave the other processors idle. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/test\/(?:slow\/|operator\/|web\/|servers\/private|stores\/[^/]+$|stores\/[^/]+\/plans|docs\/examples)/.test(
        moduleId,
      );
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const crossStore = ["simulated", "postgres", "mysql"].map((store) => ({
  extends: true as const,
  resolve: {
    alias: [
      { find: /^reprise$/, replacement: file("test/cross-store/reprise.ts") },
      { find: /^reprise\/testing$/, replacement: file("test/cross-store/testing.ts") },
      { find: /^reprise\/sqlite$/, replacement: file("test/cross-store/sqlite.ts") },
    ],
  },
  test: {
    name: store,
    include: store === "simulated" ? CROSS_STORE : ON_SERVERS,
    env: { REPRISE_TEST_STORE: store },
    setupFiles: ["test/cross-store/set-up.ts"],
  },
}));

export default defineConfig({
  resolve: { conditions: resolved },
  ssr: { resolve: { conditions: resolved, externalConditions: conditions } },
  test: {
    exclude: ["**/node_modules/**", "dist/**"],
    pool: "forks",
    maxWorkers: 3,
    isolate: false,
    sequence: { sequencer: LongestFirst },
    execArgv: conditions.map((condition) => `--conditions=${condition}`),
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // The first lets tests request shared database servers; it starts none itself.
    globalSetup: ["test/servers/shared-servers.ts", "test/compiled.ts", "test/web/built.ts"],
    // Polled values come from another process; on a busy machine that takes seconds.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      { extends: true, test: { name: "sqlite", include: EVERYTHING, exclude: [...BY_HAND, ...EXCLUDED] } },
      ...crossStore,
    ],
  },
});
