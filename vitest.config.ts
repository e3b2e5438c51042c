import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The package refers to itself by name ("reprise"); this condition makes that mean the sources, without a build.
const conditions = ["reprise-source"];

// "import" must not be among them: vitest hands them to its processes, where `require` would find modules for `import`.
const resolved = [...conditions, "node"];

const EVERYTHING = ["src/**/*.test.ts", "test/**/*.test.ts"];

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** What is written for SQLite and runs on every other store as well (test/everywhere). */
const ELSEWHERE = ["test/engine/*.test.ts", "test/flow/*.test.ts", "test/graph/*.test.ts"];

/** What is about SQLite itself: its files, its handle in `ctx.tx`, its tables looked at from beside. */
const SQLITE_ALONE = [
  "test/engine/bad-input.test.ts",
  "test/engine/encryption.test.ts",
  "test/engine/misuse.test.ts",
  "test/engine/redaction.test.ts",
  "test/engine/rough-handling.test.ts",
  "test/engine/testing-kit.test.ts",
  "test/engine/transactions.test.ts",
  "test/graph/checkpoints.test.ts",
  "test/graph/crashes.test.ts",
  "test/graph/exactly-once.test.ts",
  "test/graph/forks.test.ts",
  "test/graph/storage.test.ts",
];

/** Thousands of cases, or nothing that a store could change. */
const NOT_AGAIN = [
  "test/engine/{capacity,crash-everywhere,examples,guard,random-programs,random-surface}.test.ts",
  "test/engine/{schedule-crashes,wrong-arguments}.test.ts",
  "test/flow/{definition,random}.test.ts",
  "test/graph/{random-worlds,replay-random,scheduler-backpressure,scheduler-order,validation}.test.ts",
];

/** On real servers, which take their time: what the acceptance list names, and what rests on time, leases and order. */
const ON_SERVERS = [
  "test/engine/{ahead-of-journal,branches,children,early-messages,generations,leases,pausing}.test.ts",
  "test/engine/{retries,signals,stopped,waiting}.test.ts",
  "test/flow/{acceptance,flows,retry}.test.ts",
  "test/graph/{commits,nodes,recorded-io,replay}.test.ts",
];

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
    exclude: [...SQLITE_ALONE, ...NOT_AGAIN],
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
    execArgv: conditions.map((condition) => `--conditions=${condition}`),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Opens a desk where tests ask for database servers; starts none.
    globalSetup: ["test/servers/desk.ts"],
    // What is polled for comes from another process; on a busy machine a second is nothing.
    expect: { poll: { timeout: 20_000 } },
    projects: [{ extends: true, test: { name: "sqlite", include: EVERYTHING } }, ...elsewhere],
  },
});
