import { defineConfig } from "vitest/config";

// The package refers to itself by name ("reprise"); this condition makes that mean the sources, without a build.
const conditions = ["reprise-source"];

// "import" must not be among them: vitest hands them to its processes, where `require` would find modules for `import`.
const resolved = [...conditions, "node"];

export default defineConfig({
  resolve: { conditions: resolved },
  ssr: { resolve: { conditions: resolved, externalConditions: conditions } },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
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
  },
});
