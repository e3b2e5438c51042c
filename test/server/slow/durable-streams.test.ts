// The public conformance suite of Durable Streams against the read side of a server. The suite writes through a test-only writer
// (test/server/durable-writer.ts), and its own version of Vitest runs it.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { openDurableServer } from "../durable-writer.ts";

/** Groups that read. */
const READ = [
  "Read Operations",
  "Long-Poll Operations",
  "Browser Security Headers",
  "HEAD Metadata",
  "Offset Validation and Resumability",
  "Long-Poll Edge Cases",
  "HEAD Metadata Edge Cases",
  "Caching and ETag",
  "Chunking and Large Payloads",
  "Read-Your-Writes Consistency",
  "SSE Mode",
  "JSON Mode",
  "Byte-Exactness Property",
  "Immutability Properties",
  "Offset Validation Properties",
  "HEAD with Stream Closure",
  "Read Closed Streams (Catch-up)",
  "Long-poll with Stream Closure",
  "SSE with Stream Closure",
];

/** Groups that are left out, with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "Basic Stream Operations": "creates and deletes streams: a run emits, a client does not write",
  "Append Operations": "writes",
  "HTTP Protocol": "answers of PUT, POST and DELETE",
  "TTL and Expiry Validation": "a stream lives as long as its run",
  "Case-Insensitivity": "headers of PUT and POST",
  "Content-Type Validation": "refusals of POST",
  "Protocol Edge Cases": "edge cases of writing",
  "TTL and Expiry Edge Cases": "a stream lives as long as its run",
  "TTL Expiration Behavior": "a stream lives as long as its run",
  "Operation Sequence Properties": "sequences of writes",
  "Sequence Ordering Properties": "Stream-Seq of writers",
  "Concurrent Writer Stress Tests": "writers",
  "State Hash Verification": "replays writes",
  "Idempotent Producer Operations": "Producer-Id, Producer-Epoch and Producer-Seq of writers",
  "Create with Stream-Closed": "writes",
  "Close Operations": "writes",
  "Idempotent Producers with Stream Closure": "writers",
  "Edge Cases": "closing while writing",
  "Reserved subscription APIs": "subscriptions by webhook: another part of the protocol",
  "Fork - Creation": "forks of streams: Reprise forks runs",
  "Fork - Reading": "forks of streams",
  "Fork - Appending": "forks of streams",
  "Fork - Recursive": "forks of streams",
  "Fork - Live Modes": "forks of streams",
  "Fork - Deletion and Lifecycle": "forks of streams",
  "Fork - TTL and Expiry": "forks of streams",
  "Fork - JSON Mode": "forks of streams",
  "Fork - Edge Cases": "forks of streams",
};

/** Tests inside of a group that reads. */
const LEFT_OUT_TESTS: Readonly<Record<string, string>> = {
  "should return TTL metadata if configured": "a stream lives as long as its run",
};

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The nested Vitest of the suite; its version is not that of this repository. */
function suiteVitest(): string {
  const suite = dirname(
    createRequire(import.meta.url).resolve("@durable-streams/server-conformance-tests/package.json"),
  );
  return join(dirname(createRequire(join(suite, "package.json")).resolve("vitest/package.json")), "vitest.mjs");
}

async function runSuite(url: string, output: string, pattern: string): Promise<Report> {
  const root = join(import.meta.dirname, "..", "durable-suite");
  const args = [suiteVitest(), "run", "--root", root, "--reporter=json", `--outputFile=${output}`, "-t", pattern];
  // Not the variables of the Vitest that runs this file.
  const env = { PATH: process.env["PATH"], CONFORMANCE_TEST_URL: url };
  const child = spawn(process.execPath, args, { stdio: "ignore", env });
  await new Promise((resolve) => child.once("exit", resolve));
  return JSON.parse(readFileSync(output, "utf8")) as Report;
}

test("the read groups of the conformance suite of Durable Streams pass", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-durable-"));
  try {
    await using server = await openDurableServer();
    const report = await runSuite(server.url, join(folder, "report.json"), `(?:${READ.map(escaped).join("|")}) `);
    const results = report.testResults.flatMap(({ assertionResults }) => assertionResults);
    const groupOf = (titles: readonly string[]): string => titles.at(-1)!;
    const groups = new Set(results.map(({ ancestorTitles }) => groupOf(ancestorTitles)));
    expect([...groups].filter((group) => !READ.includes(group) && !(group in LEFT_OUT))).toEqual([]);
    const read = results.filter(
      ({ ancestorTitles, title }) => READ.includes(groupOf(ancestorTitles)) && !(title in LEFT_OUT_TESTS),
    );
    expect(
      read
        .filter(({ status }) => status !== "passed")
        .map(({ title, status, failureMessages }) => `${status}: ${title}: ${failureMessages[0]?.split("\n")[0]}`),
    ).toEqual([]);
    expect(read.length).toBeGreaterThanOrEqual(110);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
