// Situations: a store with the runs that the pages of the dashboard must explain, made by real workers in processes of their own.
//
//   order-1042  lost its worker while it packed, was taken over, waits for approval      order-1041  completed
//   order-1040  failed: the card was declined                                              order-1039, -1038  wait for approval
//   order-1037  completed, to be deleted                                                   release-3   waits for two sign-offs
//   answer-7    a graph, with the fork answer-7-fork                                       thumbs-1    a flow with a spread of 100
//   video-5     waits for a worker with the label gpu                                      invoice-9   determinism_violation
//   agent-7     waits for its budget
//
// As a program: node --conditions=reprise-source test/server/situations.ts <folder> makes the store <folder>/shop.db.

import { fork, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createClient, type Client } from "reprise";
import { invoice, SHOP } from "./situation-definitions.ts";

export interface Situations extends AsyncDisposable {
  /** The address of the store. */
  readonly store: string;
  /** A client that has the code of everything; of invoice-9, the changed one. */
  readonly client: Client;
  /** The process of the worker that is alive. */
  readonly worker: ChildProcess;
}

const WORKER = fileURLToPath(new URL("./situation-worker.ts", import.meta.url));

export function startWorker(store: string, role: string, env: NodeJS.ProcessEnv = {}): Promise<ChildProcess> {
  const worker = fork(WORKER, [store, role], {
    execArgv: ["--conditions=reprise-source"],
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    worker.once("message", () => resolve(worker));
    worker.once("exit", (code) => reject(new Error(`the worker ended with ${code}`)));
  });
}

export async function stopWorker(worker: ChildProcess, how: "SIGKILL" | "gently"): Promise<void> {
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  if (how === "SIGKILL") worker.kill("SIGKILL");
  else worker.disconnect();
  await ended;
}

/** Waits for what another process does. */
export async function until(what: string, isTrue: () => Promise<boolean> | boolean, timeoutMs = 30_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`${what} did not happen within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export async function createSituations(folder: string): Promise<Situations> {
  const store = `sqlite:${join(folder, "shop.db")}`;
  const client: Client<any> = await createClient({ store, definitions: [...SHOP, invoice(true)], logger: false });
  const waits = (id: string, reason: string): Promise<void> =>
    until(`${id} waits for ${reason}`, async () =>
      ((await client.find(id))?.waitsFor ?? []).some((one) => one.reason === reason),
    );
  const ends = (id: string): Promise<void> =>
    until(`the end of ${id}`, async () => (await client.find(id))?.endedAt !== undefined);
  const start = (name: string, id: string, input: unknown, tags: readonly string[] = []): Promise<unknown> =>
    client.start(name, input, { id, tags });

  const mark = join(folder, "packing");
  const doomed = await startWorker(store, "shop", { REPRISE_SITUATION_HOLD: mark });
  await start("checkout", "order-1042", { order: 1042 }, ["shop", "vip"]);
  await until("packing", () => existsSync(mark));
  await stopWorker(doomed, "SIGKILL");

  const worker = await startWorker(store, "shop");
  await start("checkout", "order-1041", { order: 1041, review: false }, ["shop"]);
  await start("checkout", "order-1040", { order: 1040, card: "declined" }, ["shop"]);
  await start("checkout", "order-1039", { order: 1039 }, ["shop"]);
  await start("checkout", "order-1038", { order: 1038 }, ["shop"]);
  await start("checkout", "order-1037", { order: 1037, review: false }, ["shop"]);
  await start("release", "release-3", "3.0");
  await start("agent", "agent-7", "why", ["agent"]);
  await start("research", "answer-7", { question: "why" }, ["agent"]);
  await start(
    "thumbnails",
    "thumbs-1",
    Array.from({ length: 100 }, (_, index) => `photo-${index}`),
  );
  await start("video", "video-5", "intro");
  await client.schedule("nightly-report", "report", "ann", { cron: "0 3 * * *", timeZone: "Europe/Berlin" });
  await client.schedule("old-report", "report", "bob", { every: "1 day" });
  await client.getSchedule("old-report").pause();
  await ends("answer-7");
  await client
    .get("research", "answer-7")
    .fork({ step: 2, patch: { notes: ["only this"] }, id: "answer-7-fork" } as never);

  const author = await startWorker(store, "invoice");
  await start("invoice", "invoice-9", 900);
  await waits("invoice-9", "signal");
  await stopWorker(author, "gently");
  await client.get("invoice", "invoice-9").signal("paid" as never, 900 as never);
  const editor = await startWorker(store, "changed-invoice");
  await until("the violation", async () => (await client.find("invoice-9"))?.status === "determinism_violation");
  await stopWorker(editor, "gently");

  for (const id of ["order-1042", "order-1039", "order-1038", "release-3"]) await waits(id, "promise");
  for (const id of ["order-1041", "order-1040", "order-1037", "answer-7-fork", "thumbs-1"]) await ends(id);
  await waits("agent-7", "budget");
  await waits("video-5", "no_worker");
  return {
    store,
    client,
    worker,
    async [Symbol.asyncDispose]() {
      await stopWorker(worker, "gently");
      await client.close();
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await using situations = await createSituations(process.argv[2] ?? ".");
  process.stdout.write(`${situations.store}\n`);
}
