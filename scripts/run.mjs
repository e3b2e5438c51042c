// Run: the entry point of every npm script: installs missing dependencies, then runs the command with the Node version that
// this repository pins. It must run on old versions of Node, on a fresh clone, without dependencies.

import { spawn } from "node:child_process";
import { chmodSync, existsSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { providePostgres, provideServers } from "./servers.mjs";
import { pruneTypes } from "./prune-types.mjs";
import { binOf, pinnedNode, root, setUp } from "./set-up.mjs";
import { isWebBuilt, markWebBuilt } from "./web.mjs";

const SOURCES = "--conditions=reprise-source";

// Only `npm test` runs these: they start a process per test, kill processes, or try thousands of cases. The rest takes a minute.
const SLOW = [
  "test/slow/**",
  "test/federation/models/worlds.test.ts",
  "test/federation/three-sites.test.ts",
  "test/federation/example.test.ts",
  "test/federation/every-carrier.test.ts",
  "test/federation/work/**",
  "test/cli/**",
  "test/server/slow/**",
  "test/web/**",
  "test/operator/**",
  "test/servers/**",
  "test/stores/mysql/**",
  "test/stores/postgres/**",
  "test/stores/contents.test.ts",
  "test/stores/outside-contents.test.ts",
  "test/engine/large-payloads.test.ts",
  "test/stores/failover.test.ts",
  "test/stores/tls.test.ts",
  "test/stores/remote.test.ts",
  "test/stores/views.test.ts",
  "test/stores/rules-on-rows.test.ts",
  "test/stores/row-verbs.test.ts",
  "test/stores/rekey.test.ts",
  "test/stores/memo-workers.test.ts",
  "test/stores/store-rollback.test.ts",
  "test/langgraph/published-suite-servers.test.ts",
  "test/engine/quarantine.test.ts",
  "test/stores/reading-servers.test.ts",
  "test/receipts/claims.test.ts",
  "test/receipts/damage.test.ts",
  "test/receipts/fuzz.test.ts",
  "test/federation/carriers/nats.test.ts",
  "test/federation/serve/accept-push.test.ts",
  "test/federation/serve/hostile-peer.test.ts",
  "test/federation/serve/real-runs.test.ts",
  "test/flow/random-forks.test.ts",
  "test/stores/sqlite-plans.test.ts",
  "test/stores/postgres-store.test.ts",
  "test/stores/mysql-store.test.ts",
  "test/stores/random-writes.test.ts",
  "src/stores/sqlite/sqlite-store.test.ts",
  "test/docs/examples.test.ts",
  "test/engine/void-commits.test.ts",
  "test/engine/deferred-starts.test.ts",
  "test/engine/branches.test.ts",
  "test/engine/capacity.test.ts",
  "test/engine/crash-everywhere.test.ts",
  "test/engine/examples.test.ts",
  "test/engine/generations.test.ts",
  "test/engine/guard.test.ts",
  "test/engine/labels.test.ts",
  "test/engine/leases.test.ts",
  "test/engine/leased-slots.test.ts",
  "test/engine/notices.test.ts",
  "test/engine/journal-limit.test.ts",
  "test/engine/misuse.test.ts",
  "test/engine/outbox.test.ts",
  "test/engine/pausing.test.ts",
  "test/engine/queues.test.ts",
  "test/engine/random-programs.test.ts",
  "test/engine/random-surface.test.ts",
  "test/engine/attempt-retries.test.ts",
  "test/engine/run-retry.test.ts",
  "test/engine/robustness.test.ts",
  "test/engine/schedule-crashes.test.ts",
  "test/engine/schedules.test.ts",
  "test/engine/streams.test.ts",
  "test/engine/takeover.test.ts",
  "test/engine/transactions.test.ts",
  "test/engine/undo.test.ts",
  "test/engine/updates.test.ts",
  "test/flow/random.test.ts",
  "test/graph/control.test.ts",
  "test/graph/crashes.test.ts",
  "test/graph/forks.test.ts",
  "test/graph/nodes.test.ts",
  "test/graph/outbox.test.ts",
  "test/graph/random-crashes.test.ts",
  "test/graph/replay-differences.test.ts",
  "test/graph/replay-random.test.ts",
  "test/graph/replay.test.ts",
  "test/graph/scheduler-backpressure.test.ts",
  "test/graph/storage.test.ts",
  "test/replay/random-programs.test.ts",
  "test/stores/completion-batches.test.ts",
  "test/stores/mutants.test.ts",
  "test/stores/sqlite-files.test.ts",
  "test/types/graphs-editor.test.ts",
  "test/federation/sync/forks.test.ts",
  "test/federation/sync/archive.test.ts",
  "test/federation/sync/interruption.test.ts",
  "test/federation/sync/keys.test.ts",
  "test/federation/sync/hostile-carrier.test.ts",
  "test/opentelemetry/kill.test.ts",
  "test/engine/stuck-tests.test.ts",
  "test/server/webhooks.test.ts",
  "test/a2a/a2a.test.ts",
  "test/server/mcp.test.ts",
  "test/server/mcp-tasks.test.ts",
  "test/engine/aborting.test.ts",
  "test/server/events.test.ts",
  "test/engine/two-copies.test.ts",
  "test/server/auth-wire.test.ts",
  "test/flow/interruptions.test.ts",
  "test/federation/api/federation.test.ts",
  "test/server/federated.test.ts",
  "test/federation/carriers/directory.test.ts",
  "test/engine/task-cancel.test.ts",
  "test/federation/carriers/http.test.ts",
  "test/stores/checkpoint-order.test.ts",
  "test/server/random-requests.test.ts",
  "test/federation/carriers/mutants.test.ts",
  "test/stores/remote-failures.test.ts",
  "test/stores/mirror.test.ts",
  "test/langgraph/prune-threads.test.ts",
  "test/ai/crashes.test.ts",
  "test/engine/failure-log.test.ts",
  "test/graph/limits.test.ts",
  "test/stores/expire.test.ts",
  "test/federation/tlog-reader.test.ts",
  "test/federation/carriers/equal-bytes.test.ts",
];

// Each command is a list of stages: a name, and the arguments for Node. A stage without arguments is a function.
const commands = {
  start: (args) => [["start", [SOURCES, "examples/first-run/main.ts", ...args]]],
  test: (args) => [
    ["servers", provideServers],
    ["tests", [binOf("vitest"), "run", ...args]],
  ],
  check: (args) => [
    ["format", [binOf("oxfmt"), "--check"]],
    ["lint", [binOf("oxlint"), "--deny-warnings"]],
    ["types", [binOf("typescript", "tsc"), "-p", "tsconfig.json"]],
    ["web", [binOf("typescript", "tsc"), "-p", "web/tsconfig.json"]],
    ...(args.includes("--no-tests") ? [] : [["tests", [binOf("vitest"), "run", "--project", "sqlite", ...args]]]),
  ],
  format: (args) => [["format", [binOf("oxfmt"), ...args]]],
  build: () => [
    ["clean", () => rmSync(join(root, "dist"), { recursive: true, force: true })],
    ["emit", [binOf("typescript", "tsc"), "-p", "tsconfig.build.json"]],
    ["types", pruneTypes],
    ["executable", () => makeExecutable(join(root, "dist/cli/main.js"))],
    ...commands.web(),
  ],
  // The dashboard, to dist/web: the server reads it from there, whether it runs from sources or from dist.
  web: () => [
    ["web", [binOf("vite"), "build", "--config", "web/vite.config.ts"]],
    ["mark", markWebBuilt],
  ],
  // Benchmarks run the compiled package, not the sources: stripping types in the process costs 40 MB.
  bench: (args) => [
    ...commands.build(),
    ["emit", [binOf("typescript", "tsc"), "-p", "tsconfig.bench.json"]],
    ["bench", [".reprise/bench/main.js", ...args]],
  ],
  faults: (args) => [["faults", [SOURCES, "test/faults/main.ts", ...args]]],
  sim: (args) => [["sim", [SOURCES, "test/simulation/main.ts", ...args]]],
  cli: (args) => [...(isWebBuilt() ? [] : commands.web()), ["cli", [SOURCES, "src/cli/main.ts", ...args]]],
};

const [name = "", ...args] = process.argv.slice(2);
if (!Object.hasOwn(commands, name)) {
  console.error(`Expected one of: ${Object.keys(commands).join(", ")}; got "${name}".`);
  process.exit(2);
}

if (name === "check") process.env.REPRISE_EXCLUDE = SLOW.join(",");
setUp();
const node = pinnedNode();
takePostgres();
const stages = commands[name](args);
for (const [stage, work] of stages) {
  const startedAt = Date.now();
  const code = typeof work === "function" ? (work(), 0) : await runNode(work);
  if (name === "check") {
    console.log(
      `${code === 0 ? "ok    " : "FAILED"} ${stage.padEnd(8)} ${((Date.now() - startedAt) / 1000).toFixed(1)} s`,
    );
  }
  if (code !== 0) process.exit(code);
}

/** `npm test -- --postgres 17`, also for faults: uses another PostgreSQL version than the installed one. */
function takePostgres() {
  const at = args.indexOf("--postgres");
  if (at === -1 || !["test", "faults"].includes(name)) return;
  const [, major = ""] = args.splice(at, 2);
  providePostgres(major);
}

function makeExecutable(path) {
  if (existsSync(path)) chmodSync(path, 0o755);
}

/** Runs the pinned Node in place of this process: same terminal, same signals, same exit code. */
function runNode(nodeArgs) {
  const bins = [join(root, "node_modules/.bin"), process.env.PATH ?? ""].join(delimiter);
  const child = spawn(node, nodeArgs, { cwd: root, stdio: "inherit", env: { ...process.env, PATH: bins } });
  // A terminal also sends Ctrl-C to the child; forwarding it would send it twice.
  const forward = (signal) => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      for (const each of signals) process.off(each, forward);
      if (signal !== null) process.kill(process.pid, signal);
      resolve(code ?? 1);
    });
  });
}
