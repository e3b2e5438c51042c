// Every example, killed at every commit and resumed, and run as its README says.

import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { RepriseError, type Run } from "reprise";
import { callbackUrls } from "reprise/server";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";
import { expect, test } from "vitest";
import { agent, QUESTION } from "../../examples/agent/agent.ts";
import * as approval from "../../examples/approval/main.ts";
import * as cart from "../../examples/cart/main.ts";
import * as checkout from "../../examples/checkout/main.ts";
import * as csvImport from "../../examples/csv-import/main.ts";
import * as fanOut from "../../examples/fan-out/main.ts";
import * as nightlyReport from "../../examples/nightly-report/main.ts";
import * as newsletterExample from "../../examples/newsletter/main.ts";
import * as firstRun from "../../examples/first-run/order.ts";
import {
  definitions as supportDefinitions,
  QUESTION as COMPLAINT,
  support,
} from "../../examples/support-agent/agent.ts";
import * as webhook from "../../examples/webhook/main.ts";

/** Resolves a port that may have its value already, as after a crash. */
async function resolveOnce(resolving: Promise<void>): Promise<void> {
  await resolving.catch((error: unknown) => {
    if (!(error instanceof RepriseError && ["PROMISE_ALREADY_RESOLVED", "RUN_ENDED"].includes(error.code))) throw error;
  });
}

test(
  "ACCEPTANCE 37: the order of the first run ends the same, killed at every commit",
  { timeout: 120_000 },
  async () => {
    const { order, charge, reserve, notify } = firstRun;
    const input = { id: "7", cents: 4990, to: "ann@example.org" };
    const { output, crashes } = await crashEverywhere(order, input, {
      definitions: [charge, reserve, notify],
      // The printer and the mail really take their time, for the story's sake.
      stubs: [stub("print label", () => "LABEL 7"), stub("send mail", () => ({ mailed: input.to }))],
      drive: (engine, id) => resolveOnce(engine.get(order, id).resolve("approval", { by: "Eve" })),
    });
    expect(output).toMatchObject({ status: "shipped", approvedBy: "Eve", mailed: "ann@example.org" });
    expect(crashes).toBeGreaterThan(10);
  },
);

test.each([
  { ok: true, expected: { status: "booked", confirmation: "confirmation for Ann" } },
  { ok: false, expected: { status: "refunded", refunded: 900, because: "refused by Eve" } },
])("ACCEPTANCE 37: a booking decided with ok: $ok ends the same, killed at every commit", async ({ ok, expected }) => {
  const { book, definitions } = approval;
  const { output, crashes } = await crashEverywhere(
    book,
    { guest: "Ann", cents: 900 },
    {
      definitions,
      drive: (engine, id) =>
        resolveOnce((engine.get(book, id) as Run<typeof book>).resolve("decision", { ok, by: "Eve" })),
    },
  );
  expect(output).toEqual(expected);
  expect(crashes).toBeGreaterThan(5);
});

test("a booking without a decision is refunded after a day", async () => {
  await using engine = await createTestEngine({ definitions: approval.definitions });
  const run = await engine.start(approval.book, { guest: "Ann", cents: 900 });
  await engine.clock.advance("1 day");
  expect(await run.result()).toEqual({ status: "refunded", refunded: 900, because: "no decision within a day" });
});

test.each([
  { answer: true, expected: { status: "sold", by: "Eve" }, money: "charged 900" },
  { answer: false, expected: { status: "taken back", because: "refused by Eve" }, money: "refunded" },
  {
    answer: undefined,
    expected: { status: "taken back", because: "Run checkout-7 did not end within its deadline of 2 d." },
    money: "refunded",
  },
])("ACCEPTANCE 37: a checkout answered with $answer ends the same, killed at every commit", async (wanted) => {
  const { order, definitions, ledger } = checkout;
  const { output, crashes } = await crashEverywhere(
    order,
    { id: "7", seats: 1, cents: 900 },
    {
      definitions,
      drive: async (engine) => {
        const run = (engine as unknown as { get: (what: string, id: string) => Run<typeof checkout.checkout> }).get(
          "checkout",
          "checkout-7",
        );
        const { answer } = wanted;
        if (answer === undefined) return;
        await resolveOnce(run.resolve("approval", { ok: answer, by: "Eve" }, { beforeStart: true }));
      },
    },
  );
  expect(output).toEqual(wanted.expected);
  expect([...new Set(ledger.values())]).toEqual([wanted.money]);
  expect(crashes).toBeGreaterThan(8);
  ledger.clear();
});

test("ACCEPTANCE 37: a cart of signals, queries and updates ends the same, killed at every commit", async () => {
  const { output, crashes } = await crashEverywhere(cart.cart, undefined, {
    definitions: cart.definitions,
    drive: async (engine, id) => {
      const run = engine.get(cart.cart, id) as Run<typeof cart.cart>;
      await run.signal("add", { sku: "lamp", cents: 4_000 }, { dedupId: "1" });
      await run.signal("add", { sku: "bulb", cents: 1_000 }, { dedupId: "2" });
      expect(await run.update("voucher", "SPRING", { dedupId: "3" })).toBe(4_500);
      expect(await run.query("total")).toBe(4_500);
      expect((await run.update("checkout", undefined, { dedupId: "4" })).cents).toBe(4_500);
    },
  });
  expect(output).toMatchObject({ status: "bought", items: 2, cents: 4_500 });
  expect(crashes).toBeGreaterThan(10);
});

test("an empty cart is abandoned after an hour", async () => {
  await using engine = await createTestEngine({ definitions: cart.definitions });
  const run = await engine.start(cart.cart);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual({ status: "abandoned" });
});

test("ACCEPTANCE 37: a fan-out of 40 pages ends the same, killed at every commit", { timeout: 60_000 }, async () => {
  const { report, definitions } = fanOut;
  const { output, crashes } = await crashEverywhere(report, { site: "example.org", pages: 40 }, { definitions });
  expect(output).toEqual({ site: "example.org", words: 40 * 100 + (39 * 40) / 2 - 113, missing: [13] });
  expect(crashes).toBeGreaterThan(3);
});

test.each([
  { limit: 120, expected: { saved: 119, summary: "1 rows need a person:\nrow 113: twelve is not an amount" } },
  { limit: 60, expected: { saved: 60, summary: "every row was saved" } },
])(
  "ACCEPTANCE 37: an import of $limit rows ends the same, killed at every commit",
  { timeout: 120_000 },
  async ({ limit, expected }) => {
    const { csvImport: flow, definitions } = csvImport;
    const { output, crashes } = await crashEverywhere(flow, { file: "customers.csv", limit }, { definitions });
    expect(output).toMatchObject(expected);
    expect(crashes).toBeGreaterThan(5);
  },
);

test("an import of all 500 rows saves 498 of them and names the two others", async () => {
  await using engine = await createTestEngine({ definitions: csvImport.definitions });
  const run = await engine.start(csvImport.csvImport, { file: "customers.csv" });
  await engine.clock.advance("1 minute");
  expect(await run.result()).toMatchObject({
    saved: 498,
    summary: "2 rows need a person:\nrow 113: twelve is not an amount\nrow 377 has no email",
  });
  expect(csvImport.saved.get("97")?.name).toMatch(/, Ltd\.$/);
});

test("ACCEPTANCE 37: a nightly report ends the same, killed at every commit, and has one mail per night", async () => {
  const { report, definitions } = nightlyReport;
  const { output, crashes } = await crashEverywhere(report, "ann", { definitions });
  expect(output).toContain("to ann: 112 sales until crash-everywhere");
  expect(crashes).toBeGreaterThan(5);
  await using engine = await createTestEngine({ definitions, now: new Date("2026-11-16T12:00:00Z") });
  await engine.schedule("nightly", report, "ann", { cron: "0 3 * * *", timeZone: "Europe/Berlin" });
  await engine.clock.advance("1 week");
  const mails: string[] = [];
  for await (const { id } of engine.list()) mails.push(await engine.get(report, id).result());
  expect(new Set(mails).size).toBe(7);
});
test(
  "ACCEPTANCE 37: a newsletter, killed at every commit, marks every reader once and misses none",
  { timeout: 60_000 },
  async () => {
    const { newsletter, createMailServer } = newsletterExample;
    const server = createMailServer();
    const { output, crashes } = await crashEverywhere(
      newsletter,
      { number: 7, title: "Durable letters" },
      { outbox: { mail: server.send } },
    );
    expect(output).toBe(3);
    expect(crashes).toBeGreaterThan(20);
    // One key per mail, the same in every one of those lives.
    expect([...server.sent.values()].map((mail) => (mail as { to: string }).to)).toEqual([
      "ann@example.org",
      "bob@example.org",
      "eve@example.org",
    ]);
  },
);

test.each([
  { ok: true, expected: "Done: refunded 49.90 EUR. Sorry for the trouble." },
  { ok: false, expected: "I may not do that myself: a colleague will handle it. (Refused by Eve.)" },
])(
  "ACCEPTANCE 37: an agent answered with ok: $ok ends the same, killed at every commit",
  { timeout: 120_000 },
  async ({ ok, expected }) => {
    const sent = new Set<string>();
    const { output, crashes } = await crashEverywhere(agent, QUESTION, {
      outbox: { mail: async (_mail, key) => void sent.add(key) },
      drive: (engine, id) =>
        resolveOnce((engine.get(agent, id) as Run<typeof agent>).resolve("approval", { ok, by: "Eve" })),
    });
    expect(output).toBe(expected);
    expect(crashes).toBeGreaterThan(30);
    expect(sent.size).toBe(1);
  },
);

test("an agent without an answer receives a timeout after a day", async () => {
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, QUESTION);
  await engine.clock.advance("1 day");
  expect(await run.result()).toContain("Refused by timeout.");
});

test.each([
  { second: { ok: true }, expected: "24.95 EUR for order 1043 are on their way." },
  { second: { ok: false, reason: "no receipt" }, expected: "One refund was declined: no receipt." },
])(
  "ACCEPTANCE 37: a support agent whose second refund is answered with $second ends the same, killed at every commit",
  { timeout: 120_000 },
  async ({ second, expected }) => {
    const { output, crashes } = await crashEverywhere(support, COMPLAINT, {
      definitions: supportDefinitions,
      drive: async (engine, id) => {
        const run = engine.get(support, id) as Run<typeof support>;
        // The ids of the calls are the model's.
        await resolveOnce(run.resolve("approve", { ok: true }, { key: "refund-1042", by: "Eve" }));
        await resolveOnce(run.resolve("approve", second, { key: "refund-1043", by: "Eve" }));
      },
    });
    expect(output).toContain(`49.90 EUR for order 1042 are on their way. ${expected}`);
    expect(crashes).toBeGreaterThan(20);
  },
);

test("a payment asks for the same callback URL every time, killed at every commit", async () => {
  const callback = callbackUrls({ origin: "https://runs.example.org", secret: "0123456789abcdef0123456789abcdef" });
  const asked = new Map<string, number>();
  const pay = async (_cents: number, url: string): Promise<string> => {
    asked.set(url, (asked.get(url) ?? 0) + 1);
    return "asked";
  };
  const definition = webhook.payment({ pay }, callback);
  const { output, crashes } = await crashEverywhere(definition, 500, {
    drive: (engine, id) => resolveOnce(engine.get(definition, id).resolve("paid", { cents: 500 })),
  });
  expect(output).toBe("paid 500");
  expect(crashes).toBeGreaterThan(2);
  // One URL per run: each crash is a run of its own.
  expect([...asked.keys()].every((url) => url.startsWith("https://runs.example.org/v1/hooks/wait/"))).toBe(true);
  await using engine = await createTestEngine({ definitions: [definition] });
  const run = await engine.start(definition, 5, { id: "payment-1" });
  await engine.clock.advance("1 day");
  expect(await run.result()).toBe("not paid within a day");
  expect(asked.get(callback({ run: "payment-1", port: "paid" }))).toBe(1);
});

const FOLDER = fileURLToPath(new URL("../../examples/", import.meta.url));

test("every example has a README, and its commands work", { timeout: 120_000 }, async () => {
  for (const name of readdirSync(FOLDER)) {
    expect(readdirSync(`${FOLDER}${name}`), name).toEqual(expect.arrayContaining(["README.md", "main.ts"]));
    // These have tests of their own, as long as their stories.
    if (["agent", "federation", "first-run", "support-agent"].includes(name)) continue;
    const main = `${FOLDER}${name}/main.ts`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=reprise-source", main]);
    expect(stdout, name).not.toBe("");
  }
});
