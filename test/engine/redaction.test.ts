// A secret that turns up in a failure or a log line goes nowhere: not into the file, not into the log, not into events.

import { DatabaseSync } from "node:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createEngine, FatalError, promise, task, workflow, type Logger } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, watchEvents } from "./world.ts";

const CANARY = "sk-canary-51f0/e9";
const redact = { values: () => [CANARY] };

class HttpError extends Error {
  readonly request = { url: `https://api.example.org/?key=${encodeURIComponent(CANARY)}`, body: { key: CANARY } };
}
const flaky = task("flaky", { retry: { maxAttempts: 2, baseDelay: 1 } }, () => {
  throw new HttpError(`401 for ${CANARY}`, { cause: new Error(`cause ${CANARY}`) });
});
const child = workflow("child", async () => {
  throw new Error(`child ${CANARY}`);
});
const leaky = workflow("leaky", { ports: { word: promise<string>() } }, async (ctx) => {
  const seen: string[] = [];
  const note = (error: unknown): void => void seen.push(inspect(error));
  await ctx.task(flaky).catch(note);
  await ctx
    .run("step", (op) => {
      op.log.info(`calling with ${CANARY}`, { headers: { Authorization: "Bearer abc" }, key: CANARY });
      throw new FatalError(`step ${CANARY}`);
    })
    .catch(note);
  await ctx.run("too large", () => ({ [CANARY]: Symbol("x") }) as never).catch(note);
  await ctx.child(child).catch(note);
  await ctx.promise("word").catch(note);
  ctx.log.warn("seen", { seen });
  if (seen.length !== 5) throw new Error("five failures were expected");
  throw new Error(`run ${CANARY}`);
});

function recorder(): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const note = (message: string, data?: object): void => void lines.push(inspect({ message, data }, { depth: 20 }));
  return { logger: { info: note, warn: note, error: note }, lines };
}

const spellings = [CANARY, encodeURIComponent(CANARY), JSON.stringify(CANARY).slice(1, -1)];
function holds(text: string | Buffer): boolean {
  return spellings.some((spelling) => text.includes(spelling));
}

test("a registered secret in messages, stacks, causes and log lines is nowhere in the file, the log or the events", async () => {
  using folder = createFolder();
  using watched = watchEvents();
  const { logger, lines } = recorder();
  const engine = await createTestEngine({
    store: `sqlite:${folder.file("r.db")}`,
    definitions: [leaky, child, flaky],
    logger,
    redact,
  });
  const run = await engine.start(leaky);
  await engine.clock.advance("1 s");
  await engine.crash();
  await run.reject("word", new Error(`rejected ${CANARY}`));
  const failure = await run.result().catch((error: unknown) => error);
  expect(inspect(failure, { depth: 20 })).toContain("run [redacted]");
  const info = inspect(await run.info(), { depth: 20 });
  const journal = inspect(await Array.fromAsync(run.journal()), { depth: 20 });
  expect(journal).toContain("401 for [redacted]");
  expect((await run.verify()).status).toBe("same");
  const files = (): readonly Buffer[] => readdirSync(folder.path).map((file) => readFileSync(join(folder.path, file)));
  expect(files().some((bytes) => holds(bytes))).toBe(false);
  await engine.close();
  expect(files().some((bytes) => holds(bytes))).toBe(false);
  for (const text of [inspect(failure, { depth: 20 }), info, journal, ...lines, inspect(watched.events, { depth: 20 })])
    expect(holds(text), text).toBe(false);
  expect(lines.join("\n")).toContain("Authorization: '[redacted]'");
  expect(watched.events.some(({ event }) => event === "attempt.failed")).toBe(true);
});

test("a run can be verified without the secrets that were redacted from it", async () => {
  using folder = createFolder();
  const path = folder.file("r.db");
  const options = { store: `sqlite:${path}`, definitions: [child] } as const;
  const first = await createEngine({ ...options, redact });
  await (await first.start(child, undefined, { id: "a" })).result().catch(() => {});
  await first.close();
  await using other = await createEngine(options);
  expect((await other.get(child, "a").verify()).status).toBe("same");
  const db = new DatabaseSync(path);
  const [row] = db.prepare("select cast(data as text) as data from journal where seq = 2").all();
  db.close();
  expect(row!["data"]).toContain("child [redacted]");
});

test("a word that occurs in every entry can be a secret without breaking an entry", async () => {
  await using engine = await createTestEngine({
    definitions: [flaky, leaky, child],
    redact: { values: () => ["message", "error", "name", CANARY] },
  });
  const run = await engine.start(child);
  await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { message: "child [redacted]" } });
  expect((await run.verify()).status).toBe("same");
});

test("results and inputs keep what they are given: replay needs it", async () => {
  const echo = workflow("echo", async (ctx, text: string) => ctx.run("same", text, (_op, input) => input));
  await using engine = await createTestEngine({ definitions: [echo], redact });
  expect(await (await engine.start(echo, CANARY)).result()).toBe(CANARY);
});

test("log data under a secret name is hidden by default, by custom names when given, and not at all with false", async () => {
  const says = workflow("says", async (ctx) => {
    ctx.log.info("data", { password: "p4ss", cardNumber: "4242", user: "ann" });
  });
  const logged = async (options: { redact?: false | { keys: readonly string[] } }): Promise<string> => {
    const { logger, lines } = recorder();
    await using engine = await createTestEngine({ definitions: [says], logger, ...options });
    await (await engine.start(says)).result();
    return lines.join("\n");
  };
  const usual = await logged({});
  expect([usual.includes("p4ss"), usual.includes("4242"), usual.includes("ann")]).toEqual([false, true, true]);
  const own = await logged({ redact: { keys: ["card_number"] } });
  expect([own.includes("p4ss"), own.includes("4242")]).toEqual([false, false]);
  const off = await logged({ redact: false });
  expect([off.includes("p4ss"), off.includes("4242")]).toEqual([true, true]);
});

test("an input in an error message is shown without its secrets", async () => {
  const login = workflow("login", async (ctx, _user: { name: string; password: string }) => ctx.sleep("1 day"));
  await using engine = await createTestEngine({ definitions: [login] });
  await engine.start(login, { name: "ann", password: "p4ss" }, { id: "a" });
  const refusal = await engine.start(login, { name: "bob", password: "w0rd" }, { id: "a" }).catch((error) => error);
  expect(refusal).toMatchObject({ code: "START_CONFLICT" });
  expect(inspect(refusal)).toContain("bob");
  expect(inspect(refusal)).not.toMatch(/p4ss|w0rd/);
});

test("a source of secrets that fails later neither leaks nor keeps a failure from being recorded", async () => {
  let broken = false;
  const values = (): readonly string[] => {
    if (broken) throw new Error("vault is down");
    return [CANARY];
  };
  await using engine = await createTestEngine({ definitions: [child], redact: { values } });
  broken = true;
  const run = await engine.start(child);
  await expect(run.result()).rejects.toMatchObject({ cause: { message: "child [redacted]" } });
});

test("wrong redact options are refused without showing a secret", async () => {
  for (const wrong of [
    5,
    { key: [] },
    { keys: "password" },
    { keys: [5] },
    { values: [CANARY] },
    { values: () => CANARY },
    { values: () => [5] },
    {
      values: () => {
        throw new Error("no");
      },
    },
  ]) {
    const refusal = await createTestEngine({ definitions: [], redact: wrong as never }).catch((error) => error);
    expect(refusal).toMatchObject({ code: "BAD_OPTIONS" });
    expect(refusal.message).not.toContain(CANARY);
  }
});
