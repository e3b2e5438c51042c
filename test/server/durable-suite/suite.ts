// The conformance suite of Durable Streams; its own version of Vitest runs this file (test/server/slow/durable-streams.test.ts).

import { runConformanceTests } from "@durable-streams/server-conformance-tests";

runConformanceTests({ baseUrl: process.env["CONFORMANCE_TEST_URL"] ?? "", longPollTimeoutMs: 4_000 });
