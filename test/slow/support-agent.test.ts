// The example support-agent as people run it: its story, its page in a browser, and a model server of another program.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createClient } from "reprise";
import { describe, expect, test } from "vitest";
import { definitions, QUESTION, support } from "../../examples/support-agent/agent.ts";
import { readLedger } from "../../examples/support-agent/shop.ts";
import { startCompletions } from "../ai/completions-server.ts";
import { finished, startNode } from "../cli/cli-process.ts";
import { createFolder, createGate } from "../engine/world.ts";
import { expectAccessible } from "../web/axe.ts";
import { findBrowser, openPage } from "../web/browser.ts";

const SERVER = fileURLToPath(new URL("../../examples/support-agent/server.ts", import.meta.url));

interface Serving extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
}

async function serve(store: string, env: Readonly<Record<string, string>> = {}): Promise<Serving> {
  const child = fork(SERVER, {
    env: { ...process.env, STORE: store, PORT: "0", ...env },
    execArgv: ["--conditions=reprise-source"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const [url] = (await once(child, "message")) as [string];
  return {
    child,
    url,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

test("the story of the support agent survives two kills with one refund", { timeout: 90_000 }, async () => {
  const { code, stdout, stderr } = await finished(startNode(["examples/support-agent/main.ts"]));
  expect(code, stderr).toBe(0);
  const lines = stdout.split("\n");
  expect(lines.filter((line) => line.includes("SIGKILL"))).toHaveLength(2);
  expect(lines).toEqual(
    expect.arrayContaining([
      // On a slow machine the answer, or the refund, may end before the kill.
      expect.stringMatching(/^Agent(?:, again)?: I am sorry to hear that\. Let me look at your orders\.$/),
      "Eve is asked to refund 49.90 EUR for order 1042: yes.",
      "Eve is asked to refund 24.95 EUR for order 1043: no.",
      expect.stringMatching(/^The bank was called [12] times with 1 key: one refund\.$/),
      expect.stringMatching(/^Spent 0\.000\d+ USD, lost in the crash 0\.00\d+ USD, of 0\.050000 USD\.$/),
      expect.stringMatching(/^Ticket 2 has spent .* it waits\.$/),
      "refunds: 1",
      "brevity: 1",
    ]),
  );
});

describe.skipIf(findBrowser() === undefined)("the page of the support agent", () => {
  test("shows words as they come and after a reload, and sends the answers of both buttons", async () => {
    using folder = createFolder();
    const [store, ledger] = [`sqlite:${folder.file("support.db")}`, folder.file("ledger.jsonl")];
    // The model stops after three words until the test lets it continue.
    const gate = createGate();
    let words = 0;
    const onWord = async (): Promise<void> => (++words === 4 ? gate.wait() : undefined);
    await using models = await startCompletions({ small: "friendly" }, { onWord });
    await using serving = await serve(store, { MODEL_URL: models.url, MODEL: "small", LEDGER: ledger });
    const { page, expectClean } = await openPage(serving.url);
    await page.getByLabel("Your question").fill(QUESTION);
    await page.getByRole("button", { name: "Ask" }).click();
    await page.locator(".live").getByText("I am sorry").waitFor();
    await page.reload();
    await page.locator(".live").getByText("I am sorry").waitFor();
    gate.open();
    const ask = page.locator(".approval");
    await ask.filter({ hasText: "Refund 49.90 EUR for order 1042: it arrived broken." }).waitFor();
    await ask.filter({ hasText: "1043" }).waitFor();
    await expectAccessible(page);
    await ask.filter({ hasText: "1042" }).getByRole("button", { name: "Approve" }).click();
    await ask.filter({ hasText: "1043" }).getByRole("button", { name: "Refuse" }).click();
    await page.getByText("Done.").waitFor();
    const messages = await page.locator(".message").allTextContents();
    expect(messages).toHaveLength(4);
    expect(messages[1]).toBe("I am sorry to hear that. Let me look at your orders.");
    expect(messages[3]).toContain("49.90 EUR for order 1042 are on their way. One refund was declined");
    expect(readLedger(ledger).map(({ order }) => order)).toEqual(["1042"]);
    expectClean();
    await page.context().close();
  });
});

test("with MODEL_URL the same agent talks to a server of chat completions, and repeats what that refuses", async () => {
  using folder = createFolder();
  await using models = await startCompletions({ small: "friendly" });
  models.refuseNext(503, { "retry-after": "0" });
  const store = `sqlite:${folder.file("support.db")}`;
  await using _serving = await serve(store, { MODEL_URL: models.url, MODEL: "small", MODEL_KEY: "secret-of-the-test" });
  await using client = await createClient({ store, definitions });
  const run = await client.start(support, QUESTION, { id: "ticket-1" });
  await run.resolve("approve", { ok: true }, { key: "refund-1042" });
  await run.resolve("approve", { ok: true }, { key: "refund-1043" });
  expect(await run.result({ timeout: "20 s" })).toContain("24.95 EUR for order 1043 are on their way.");
  expect(models.requests.map(({ model, messages }) => `${model} ${messages.length}`)).toEqual([
    "small 2",
    "small 2",
    "small 5",
    "small 8",
  ]);
  expect(models.requests.every(({ authorization }) => authorization === "Bearer secret-of-the-test")).toBe(true);
  const journal = JSON.stringify(await Array.fromAsync(run.journal()));
  expect(journal).toContain("getOrder");
  expect(journal).not.toContain("secret-of-the-test");
});
