// Approval links: what their page shows, that reading changes nothing, and that they answer once.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { createClient, createEngine, promise, workflow, type Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { secretOf } from "../../src/server/auth/server-secret.ts";
import { signLink } from "../../src/server/links/approval-link.ts";
import { ask, codeOf, ORIGIN, ROLE_TOKENS, tokenFor } from "./auth-fixture.ts";

const HOSTILE = `<script>alert(1)</script><img src=x onerror=alert(2)>"'&\u202Egnp.exe javascript:alert(3)`;

const refund = workflow(
  "refund",
  { ports: { decision: promise<{ ok: boolean; by: string; reason?: string }>(), sign: promise<boolean>() } },
  async (ctx, show: unknown) => {
    const decision = await ctx.promise("decision", { show, timeout: "2 hours" });
    return decision ?? "no answer";
  },
);
const signing = workflow("signing", { ports: { sign: promise(z.boolean()) } }, async (ctx, people: readonly string[]) =>
  Promise.all(people.map((key) => ctx.promise("sign", { key }))),
);
const odd = workflow("odd", { ports: { cents: promise(z.number()) } }, async (ctx) => ctx.promise("cents"));

let engine: Engine<typeof refund | typeof signing | typeof odd>;
let server: Server;
const lines: { message: string; data: object | undefined }[] = [];
const logger = {
  info: (message: string, data?: object) => void lines.push({ message, data }),
  warn: () => {},
  error: () => {},
};

beforeAll(async () => {
  engine = await createEngine({ store: "sqlite::memory:", definitions: [refund, signing, odd], logger: false });
  server = createServer(engine, { auth: { tokens: ROLE_TOKENS }, origin: ORIGIN, logger });
});

afterAll(async () => {
  await server.close();
  await engine.close();
});

async function waiting(id: string, show: unknown): Promise<void> {
  await engine.start(refund, show as never, { id });
  await isOpen(id, "decision");
}

/** Resolves when the run waits for the promise. */
async function isOpen(run: string, name: string, key?: string): Promise<void> {
  await expect
    .poll(async () => {
      for await (const one of engine.promises({ name })) if (one.runId === run && one.key === key) return true;
      return false;
    })
    .toBe(true);
}

const linkOf = async (id: string, name = "finance"): Promise<string> =>
  new URL((await server.approvalLink(id, "decision", { name })).url).pathname;

/** A form as a browser sends it from the page. */
const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> =>
  server.fetch(
    new Request(`${ORIGIN}${path}`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: new URLSearchParams(fields).toString(),
    }),
  );

test("the page shows what the promise shows as text, and loads and runs nothing", async () => {
  await waiting("hostile", { what: HOSTILE, [HOSTILE]: 1 });
  const page = await ask(server, await linkOf("hostile"), { headers: { accept: "text/html" } });
  const text = await page.text();
  expect(page.status).toBe(200);
  expect(text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  expect(text).not.toMatch(/<script|<img|\u202E|href=|src="/);
  const policy = page.headers.get("content-security-policy")!;
  expect(policy).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
  );
  expect(page.headers.get("cache-control")).toBe("no-store");
  expect(page.headers.get("referrer-policy")).toBe("no-referrer");
  for (const part of [
    "hostile",
    "refund asks",
    "Open since",
    "Answer until",
    "You answer as finance",
    "Approve",
    "Reject",
  ])
    expect(text).toContain(part);
});

test("a text, fields, other values and nothing are shown, and long values are cut", async () => {
  const shown: [unknown, string][] = [
    ["Refund 72 EUR?", "<h1>Refund 72 EUR?</h1>"],
    [{ cents: 7200, to: "card" }, "<dt>cents</dt><dd>7200</dd>"],
    [
      { order: "57802", title: "Refund 72 EUR", why: "damaged" },
      '<h1>Refund 72 EUR</h1><p class="text">damaged</p><dl><dt>order',
    ],
    [{ list: [1, { a: 2n }] }, "&quot;a&quot;: &quot;2&quot;"],
    [undefined, "<h1>Approve?</h1>"],
    ["x".repeat(100_000), "(100000 characters)"],
  ];
  for (const [at, [show, expected]] of shown.entries()) {
    await waiting(`shown-${at}`, show);
    const text = await (await ask(server, await linkOf(`shown-${at}`))).text();
    expect(text, String(show).slice(0, 20)).toContain(expected);
    expect(text.length).toBeLessThan(40_000);
  }
});

test("reading the link changes nothing, and answering works once, after which the page says who answered, when and why", async () => {
  await waiting("once", "Refund?");
  const [path, ofBoss] = [await linkOf("once"), await linkOf("once", "boss")];
  for (const method of ["GET", "HEAD", "GET"]) expect((await ask(server, path, { method })).status).toBe(200);
  await isOpen("once", "decision");
  const first = await post(path, { decision: "reject", reason: "Card reported <stolen>" });
  expect([first.status, (await first.text()).includes("Your answer was recorded")]).toEqual([200, true]);
  expect(await engine.get(refund, "once").result()).toEqual({
    ok: false,
    by: "finance",
    reason: "Card reported <stolen>",
  });
  for (const again of [
    await post(path, { decision: "approve" }),
    await post(path, { decision: "reject" }),
    await ask(server, path),
    await ask(server, ofBoss),
  ]) {
    const text = await again.text();
    expect(again.status).toBe(410);
    expect(text).toContain("Rejected by finance");
    expect(text).toContain("Card reported &lt;stolen&gt;");
    expect(text).toMatch(/<time datetime="\d{4}-\d\d-\d\dT/);
  }
  expect(lines.filter(({ message }) => message === "audit answerApprovalLink").map(({ data }) => data)).toEqual([
    {
      caller: "finance",
      run: "once",
      port: "decision",
      reason: "Card reported <stolen>",
      outcome: "done",
      status: 200,
    },
    { caller: "finance", run: "once", port: "decision", outcome: "refused", status: 410 },
    { caller: "finance", run: "once", port: "decision", outcome: "refused", status: 410 },
  ]);
  expect(JSON.stringify(lines)).not.toContain(path.slice("/a/".length));
});

test("of many answers at the same time one counts, and every page names it", async () => {
  await waiting("race", "Refund?");
  const paths = await Promise.all(["ann", "bob", "eve"].map((name) => linkOf("race", name)));
  const answers = await Promise.all(
    paths.flatMap((path, at) => [
      post(path, { decision: at === 1 ? "reject" : "approve" }),
      post(path, { decision: at === 1 ? "reject" : "approve" }),
    ]),
  );
  expect(answers.map(({ status }) => status).filter((status) => status === 200)).not.toHaveLength(0);
  const { by } = (await engine.get(refund, "race").result()) as { by: string };
  for (const path of paths) expect(await (await ask(server, path)).text()).toContain(`by ${by}`);
});

test("a changed, foreign or cut link is unknown, and one that expired is closed", async () => {
  await waiting("forged", "Refund?");
  const path = await linkOf("forged");
  const [body, mac] = path.slice("/a/".length).split(".") as [string, string];
  const other = Buffer.from(JSON.stringify({ r: "once", p: "decision", n: "finance", x: 9e15 })).toString("base64url");
  for (const token of [
    `${other}.${mac}`,
    `${body}.${mac.slice(0, -1)}`,
    `${body}.${"A".repeat(43)}`,
    body,
    "x",
    `${body}x.${mac}`,
  ])
    expect((await ask(server, `/a/${token}`)).status, token.slice(-20)).toBe(404);
  await using elsewhere = createServer(engine, { origin: ORIGIN, auth: { tokens: ROLE_TOKENS } });
  expect((await ask(elsewhere, path)).status).toBe(404);
  // A browser token and a session are signed by the same server, for something else.
  const minted = await ask(server, "/v1/tokens", {
    body: { run: "forged", role: "approver" },
    token: tokenFor("admin"),
  });
  const { token } = (await minted.json()) as { token: string };
  expect((await ask(server, `/a/${token.slice("rpb_".length)}`)).status).toBe(404);
  expect(
    await codeOf(ask(server, "/v1/tokens", { body: { run: "forged", role: "reader" }, token: `rpb_${body}.${mac}` })),
  ).toBe("401 TOKEN_REQUIRED");
  const secret = "0123456789abcdef0123456789abcdef";
  await using known = createServer(engine, { origin: ORIGIN, auth: { tokens: ROLE_TOKENS }, secret });
  const late = signLink(secretOf(secret, "secret"), { r: "forged", p: "decision", n: "finance", x: Date.now() - 1 });
  expect((await ask(known, `/a/${late}`)).status).toBe(410);
  await engine.get(refund, "forged").terminate("test");
  expect((await ask(server, path)).status).toBe(410);
});

test("only a form of the two decisions is accepted, whatever page sends it, and only for this server's name", async () => {
  await waiting("form", "Refund?");
  const path = await linkOf("form");
  expect((await post(path, { decision: "maybe" })).status).toBe(400);
  expect((await post(path, { decision: "approve", extra: "1" })).status).toBe(400);
  expect((await post(path, { reason: "x".repeat(1_001), decision: "approve" })).status).toBe(400);
  expect((await ask(server, path, { body: { decision: "approve" } })).status).toBe(415);
  const rebound = new Request(`http://evil.example${path}`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "decision=approve",
  });
  expect((await server.fetch(rebound)).status).toBe(421);
  await isOpen("form", "decision");
  // With the page's policy a browser sends `Origin: null`.
  expect((await post(path, { decision: "approve" }, { origin: "null" })).status).toBe(200);
  expect(await engine.get(refund, "form").result()).toEqual({ ok: true, by: "finance" });
});

test("a link is for one key, and the schema of the port or the maker of the link decides what the buttons send", async () => {
  await engine.start(signing, ["ann", "bob"], { id: "keys" });
  await isOpen("keys", "sign", "bob");
  const make = async (body: object, id = "keys"): Promise<Response> =>
    ask(server, `/v1/runs/${id}/links`, { body, token: tokenFor("approver") });
  const bob = (await (await make({ port: "sign", key: "bob", name: "Bob" })).json()) as { url: string };
  expect((await post(new URL(bob.url).pathname, { decision: "reject" })).status).toBe(200);
  await isOpen("keys", "sign", "ann");
  expect(await codeOf(make({ port: "sign", name: "Eve" }))).toBe("404 UNKNOWN_PORT");
  expect(await codeOf(make({ port: "sign", key: "bob", name: "Eve" }))).toBe("409 PROMISE_ALREADY_RESOLVED");
  const ann = (await (await make({ port: "sign", key: "ann" })).json()) as { url: string; expiresAt: string };
  expect(Date.parse(ann.expiresAt) - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
  await post(new URL(ann.url).pathname, { decision: "approve" });
  expect(await engine.get(signing, "keys").result()).toEqual([true, false]);
  await engine.start(odd, undefined, { id: "odd" });
  await isOpen("odd", "cents");
  expect(await codeOf(make({ port: "cents" }, "odd"))).toBe("400 BAD_OPTIONS");
  const cents = (await (await make({ port: "cents", approve: 72, reject: 0 }, "odd")).json()) as { url: string };
  await post(new URL(cents.url).pathname, { decision: "approve" });
  expect(await engine.get(odd, "odd").result()).toBe(72);
});

test("a link ends with the timeout of its promise, and needs the role approver and a run in scope to be made", async () => {
  await waiting("limits", "Refund?");
  const make = (token: string, id = "limits"): Promise<Response> =>
    ask(server, `/v1/runs/${id}/links`, { body: { port: "decision" }, token });
  const made = (await (await make(tokenFor("approver"))).json()) as { url: string; expiresAt: string };
  expect(made.url).toMatch(/^http:\/\/127\.0\.0\.1:7420\/a\/[\w-]+\.[\w-]{43}$/);
  expect(Date.parse(made.expiresAt) - Date.now()).toBeLessThanOrEqual(2 * 3_600_000);
  expect(await codeOf(make(tokenFor("reader")))).toBe("403 ROLE_REQUIRED");
  expect(await codeOf(make(tokenFor("approver"), "absent"))).toBe("404 RUN_NOT_FOUND");
  const minted = await ask(server, "/v1/tokens", {
    body: { run: "limits", role: "approver" },
    token: tokenFor("admin"),
  });
  const { token } = (await minted.json()) as { token: string };
  expect(await codeOf(make(token))).toBe("403 ROLE_REQUIRED");
});

test("a process that does not have the code of the run shows the page and answers all the same", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-links-"));
  const store = `sqlite:${join(folder, "shop.db")}`;
  {
    await using shop = await createEngine({ store, definitions: [refund], logger: false });
    await shop.start(refund, "Refund?" as never, { id: "elsewhere" });
    await expect.poll(async () => (await shop.get(refund, "elsewhere").info()).status).toBe("waiting");
    await using client = await createClient({ store, definitions: [] });
    await using portal = createServer(client, { origin: ORIGIN, auth: { tokens: ROLE_TOKENS } });
    const { url } = await portal.approvalLink("elsewhere", "decision", { name: "finance" });
    expect(await (await ask(portal, new URL(url).pathname)).text()).toContain("<h1>Refund?</h1>");
    const answered = await portal.fetch(
      new Request(url, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: "decision=approve",
      }),
    );
    expect(answered.status).toBe(200);
    expect(await shop.get(refund, "elsewhere").result()).toEqual({ ok: true, by: "finance" });
  }
  rmSync(folder, { recursive: true });
});

test("a link can be made before the run asks, but not without an address or for a run that has ended", async () => {
  await waiting("early", "Refund?");
  const early = new URL((await server.approvalLink("early", "sign", { name: "Ann" })).url).pathname;
  expect((await ask(server, early)).status).toBe(425);
  expect((await post(early, { decision: "approve" })).status).toBe(425);
  await using nowhere = createServer(engine);
  await expect(nowhere.approvalLink("early", "decision", { name: "Ann" })).rejects.toThrow(/does not know its address/);
  await engine.get(refund, "early").terminate("test");
  await expect(server.approvalLink("early", "decision", { name: "Ann" })).rejects.toThrow(/has ended/);
  expect((await ask(server, early)).status).toBe(410);
});
