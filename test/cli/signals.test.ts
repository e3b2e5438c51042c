// A command that a signal ends cleans up and exits with 128 and the number of the signal (cli.S1).

import { expect, test, vi } from "vitest";
import { createEngine } from "reprise";
import { DEFINITIONS, finished, jsonLines, startCli, waitForOutput } from "./cli-process.ts";
import { cart, greet, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

// Every command is a process, which is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

/** A command that waits until it is ended, and what it prints when it waits. */
const WAITING: readonly (readonly [args: readonly string[], printed: string, onTerm: number])[] = [
  [["worker", DEFINITIONS], "started worker", 0],
  [["dev", DEFINITIONS], "ready:", 143],
  [["run", DEFINITIONS, "review", "--id", "review-2"], "run review-2", 143],
  [["top", "--json", "--interval", "1h"], "countedUpTo", 143],
  [["top", "--interval", "1h"], "reprise top", 143],
  [["show", "review-1", "--watch"], "approval", 143],
  [["show", "review-1", "--watch", "--json"], "PromiseCreated", 143],
  [["stream", "cart-1", "said"], "got a", 143],
  [["update", "cart-1", "drop", '"a"', "--file", DEFINITIONS], "no answer yet", 143],
];

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  test(`${signal} ends every command that waits with ${code}${signal === "SIGTERM" ? ", and a worker with 0" : ""}`, async () => {
    using store = await new StoreWithRuns([review, cart, greet]).start(
      { id: "review-1", what: review, until: "waiting" },
      { id: "cart-1", what: cart, until: "waiting" },
    );
    {
      await using engine = await createEngine({ store: store.url, definitions: [cart] });
      const run = engine.get(cart, "cart-1");
      await run.signal("add", { sku: "a" });
      for await (const _ of run.stream("said")) break;
    }
    // The worker comes last: it would answer the update.
    for (const [args, printed, onTerm] of WAITING.toReversed()) {
      const child = startCli([...args, "--store", store.url]);
      const ended = finished(child);
      await waitForOutput(child, printed);
      child.kill(signal);
      expect([args.join(" "), (await ended).code]).toEqual([args.join(" "), signal === "SIGINT" ? code : onTerm]);
    }
    // Cleaned up: no worker holds a lease.
    const [report] = jsonLines((await store.cli("doctor", "--json")).stdout);
    expect(report).toMatchObject({ healthy: true, store: { workers: [] } });
  });
