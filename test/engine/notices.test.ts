// Notices between processes are hints: with them alone a process hears of the commits it waits for, and without them it polls.

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { finished, ROOT, startNode } from "../cli/cli-process.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import { oneChannelStore, type Channel } from "./one-channel-store.ts";
import { createFolder } from "./world.ts";

const echo = workflow("echo", async (ctx, text: string) => ctx.run("echo", () => `${text} from a worker`));

/** The output of a client process whose runs a worker of this process executes. */
async function outputOfClient(url: string, ofWorker: Channel, ofClient: Channel): Promise<string> {
  await using _worker = await createEngine({ store: oneChannelStore(url, ofWorker), definitions: [echo] });
  const program = join(ROOT, "test/engine/one-channel-client.ts");
  const { stdout, stderr } = await finished(startNode([program, url, ofClient]));
  expect(stderr).toBe("");
  return stdout;
}

const CASES = [
  ["notices", "notices"],
  ["notices", "polls"],
  ["polls", "notices"],
  ["polls", "polls"],
] as const;

describe("on one SQLite file", () => {
  test.for(CASES)("a worker that %s reach executes the run of a client that %s reach", async ([worker, client]) => {
    using folder = createFolder();
    expect(await outputOfClient(`sqlite:${folder.file("store.db")}`, worker, client)).toBe("hello from a worker\n");
  });
});

describeOn("postgres", "on PostgreSQL", () => {
  test.for(CASES)("a worker that %s reach executes the run of a client that %s reach", async ([worker, client]) => {
    await using database = await freshDatabase("postgres");
    expect(await outputOfClient(database.url, worker, client)).toBe("hello from a worker\n");
  });
});
