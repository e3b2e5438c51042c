// A token whose rights were changed while it is in use.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TokenSettings } from "reprise/server";
import { expect, test } from "vitest";
import { approval, ask, codeOf, openEngine, settings, SECRET, tokenFor } from "./auth-fixture.ts";

test("a token that gets a lower role ends its streams and the browser tokens that it may no longer mint", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-narrowed-"));
  const tokenFile = join(folder, "tokens.json");
  const write = (token: TokenSettings): void =>
    writeFileSync(tokenFile, JSON.stringify({ tokens: [token] }), { mode: 0o600 });
  write(settings("page", "approver"));
  await using engine = await openEngine();
  await using server = createServer(engine, { auth: { tokenFile } });
  await engine.start(approval, SECRET, { id: "narrowed-1" });
  const token = tokenFor("page");
  const minted = await ask(server, "/v1/tokens", { token, body: { run: "narrowed-1", role: "approver" } });
  const { token: browser } = (await minted.json()) as { token: string };
  expect((await ask(server, "/v1/runs/narrowed-1", { token: browser })).status).toBe(200);
  const events = { accept: "text/event-stream" };
  const open = await Promise.all(
    [token, browser].map((one) => ask(server, "/v1/runs/narrowed-1/streams/words", { token: one, headers: events })),
  );
  for (const { status } of open) expect(status).toBe(200);
  write(settings("page", "viewer", { definitions: ["approval"] }));
  // The run still waits: only the change of the token ends them.
  for (const response of open) expect(await response.text()).not.toContain("event: end");
  expect(await codeOf(ask(server, "/v1/runs/narrowed-1", { token: browser }))).toBe("401 TOKEN_REQUIRED");
  expect((await ask(server, "/v1/runs/narrowed-1", { token })).status).toBe(200);
  rmSync(folder, { recursive: true });
});
