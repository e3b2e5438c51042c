import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// The package refers to itself by name ("reprise"); this condition makes that mean the sources, without a build.
const conditions = ["reprise-source"];

// "import" must not be among them: vitest hands them to its processes, where `require` would find modules for `import`.
const resolved = [...conditions, "node"];

const EVERYTHING = ["src/**/*.test.ts", "test/**/*.test.ts"];

/** Minutes each: `npm run faults` runs the same rigs on every store; one store is enough for every change. */
const BY_HAND = ["test/slow/faults/{mysql,sqlite}.test.ts"];

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** What is written for SQLite and runs on every other store as well (test/everywhere). */
const ELSEWHERE = [
  "test/engine/{ahead-of-journal,beginnings,branches,cancelling,children,child-messages,deadlines}.test.ts",
  "test/engine/{early-messages,generations,leases,outbox,pausing,queues,retries,retrying,schedules}.test.ts",
  "test/engine/{signals,stopped,streams,terminating,updates,waiting}.test.ts",
  "test/flow/{acceptance,control,flows,retry,stopping,verify}.test.ts",
  "test/graph/{commits,composition,joins,nodes,recorded-io,replay,retry,time-travel}.test.ts",
];

/** On real servers, which take their time: one file for each way in which time, order and crashes matter. */
const ON_SERVERS = [
  "test/engine/{early-messages,signals,stopped,waiting}.test.ts",
  "test/flow/{acceptance,retry}.test.ts",
  "test/graph/{commits,recorded-io}.test.ts",
];

/** What takes longest comes first: one of these at the end would have a processor for itself, and the others nothing to do. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/test\/(?:slow\/|stores\/[^/]+$|docs\/examples)/.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const elsewhere = ["simulated", "postgres", "mysql"].map((store) => ({
  extends: true as const,
  resolve: {
    alias: [
      { find: /^reprise$/, replacement: file("test/everywhere/reprise.ts") },
      { find: /^reprise\/testing$/, replacement: file("test/everywhere/testing.ts") },
      { find: /^reprise\/sqlite$/, replacement: file("test/everywhere/sqlite.ts") },
    ],
  },
  test: {
    name: store,
    include: store === "simulated" ? ELSEWHERE : ON_SERVERS,
    env: { REPRISE_TEST_STORE: store },
    setupFiles: ["test/everywhere/set-up.ts"],
  },
}));

export default defineConfig({
  resolve: { conditions: resolved },
  ssr: { resolve: { conditions: resolved, externalConditions: conditions } },
  test: {
    exclude: ["**/node_modules/**", "dist/**"],
    pool: "forks",
    maxWorkers: 2,
    isolate: false,
    sequence: { sequencer: LongestFirst },
    execArgv: conditions.map((condition) => `--conditions=${condition}`),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // The first opens a desk where tests ask for database servers; starts none.
    globalSetup: ["test/servers/desk.ts", "test/compiled.ts"],
    // What is polled for comes from another process; on a busy machine a second is nothing.
    expect: { poll: { timeout: 20_000 } },
    projects: [{ extends: true, test: { name: "sqlite", include: EVERYTHING, exclude: BY_HAND } }, ...elsewhere],
  },
});
