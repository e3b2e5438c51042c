import { defineConfig } from "vitest/config";

// The package refers to itself by name ("reprise"); this condition makes that mean the sources, without a build.
const conditions = ["reprise-source"];

export default defineConfig({
  resolve: { conditions: [...conditions, "node", "import", "module", "default"] },
  ssr: {
    resolve: { conditions: [...conditions, "node", "import", "module", "default"], externalConditions: conditions },
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "dist/**"],
    pool: "forks",
    maxWorkers: 2,
    isolate: false,
    execArgv: conditions.map((condition) => `--conditions=${condition}`),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // What is polled for comes from another process; on a busy machine a second is nothing.
    expect: { poll: { timeout: 20_000 } },
  },
});
