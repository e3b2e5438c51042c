// Webhooks and SIGKILL: an event that is committed reaches its endpoint, under one id, on every store.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createFolder } from "../../engine/world.ts";
import { describeOn, freshDatabase } from "../../servers/index.ts";
import { refusalOf, SECRET, startReceiver } from "../receiver.ts";

const PROCESS = fileURLToPath(new URL("webhook-process.ts", import.meta.url));

function run(store: string, url: string, ...rest: readonly string[]): ChildProcess & AsyncDisposable {
  const child = spawn(process.execPath, ["--conditions=reprise-source", PROCESS, store, url, SECRET, ...rest], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return Object.assign(child, { [Symbol.asyncDispose]: () => kill(child) });
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Killed after the commit and before an endpoint listens; then killed after the request and before its answer. */
async function survives(store: string): Promise<void> {
  let port: number;
  {
    await using closed = await startReceiver();
    port = closed.port;
  }
  const url = `http://127.0.0.1:${port}/events`;
  {
    await using first = run(store, url, "start");
    await once(first.stdout!, "data");
    await kill(first);
  }
  await using receiver = await startReceiver((n) => (n === 0 ? "never" : 200), port);
  {
    await using second = run(store, url);
    await receiver.got(1);
    await kill(second);
  }
  await using _third = run(store, url);
  const deliveries = await receiver.got(2);
  expect(new Set(deliveries.map(({ id }) => id)).size).toBe(1);
  expect(deliveries.map((one) => refusalOf(one))).toEqual([undefined, undefined]);
  expect(deliveries[1]?.body).toMatchObject({ type: "run.ended", data: { run: "order-1", status: "completed" } });
}

describe("on SQLite", () => {
  test("an event survives a kill before its request and one before its answer", async () => {
    using folder = createFolder();
    await survives(`sqlite:${folder.file("shop.db")}`);
  });
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on ${kind}`, () => {
    test("an event survives a kill before its request and one before its answer", async () => {
      await using database = await freshDatabase(kind);
      await survives(database.url);
    });
  });
