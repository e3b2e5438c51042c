// reprise token: what the command line writes is what a running server reads.

import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { command, jsonLines, type Finished } from "../cli/cli-process.ts";
import { approval, ask, codeOf, openEngine, type other } from "./auth-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-token-"));
const file = join(folder, "home", "tokens.json");
const home = ["--home", join(folder, "home")];
let engine: Engine<typeof approval | typeof other>;
let server: Server;

beforeAll(async () => {
  engine = await openEngine();
  await engine.start(approval, "card", { id: "run-1" });
  server = createServer(engine, { auth: { tokenFile: file } });
});

afterAll(async () => {
  await server.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

const cli = (...args: string[]): Promise<Finished> => command(args);

const tried = async (token: string): Promise<string> => {
  const response = await ask(server, "/v1/tokens", { body: { run: "run-1", role: "reader" }, token });
  return response.status === 201 ? "201" : codeOf(response);
};

test("a created token works at a running server until it is revoked, and no file or list has it", async () => {
  const created = await cli("token", "create", "ci", "--role", "operator", ...home);
  const token = created.stdout.trim();
  expect(created).toMatchObject({ code: 0, stderr: expect.stringContaining("only time the token is shown") });
  expect(token).toMatch(/^rp_[0-9a-f]{8}_[\w-]{43}$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await tried(token)).toBe("201");
  const limits = ["--role", "viewer", "--definitions", "a,b", "--tags", "eu", "--queues", "q", "--expires", "90 days"];
  const [ann] = jsonLines((await cli("token", "create", "ann", ...limits, "--json", ...home)).stdout) as [
    Record<string, string>,
  ];
  expect(ann).toMatchObject({
    name: "ann",
    role: "viewer",
    definitions: ["a", "b"],
    tags: ["eu"],
    queues: ["q"],
    file,
  });
  expect(Date.parse(ann["expiresAt"]!) - Date.parse(ann["createdAt"]!)).toBe(90 * 86_400_000);
  const list = await cli("token", "list", ...home);
  expect(list.stdout).toMatch(/^NAME +ROLE +SCOPE/);
  expect(list.stdout).toMatch(/ci +operator +all +never/);
  const all = readFileSync(file, "utf8") + list.stdout + (await cli("token", "list", "--json", ...home)).stdout;
  for (const secret of [token, ann["token"]!]) expect(all).not.toContain(secret.slice(12));
  expect(await cli("token", "revoke", "ci", ...home)).toMatchObject({ code: 0 });
  expect(await tried(token)).toBe("401 TOKEN_REQUIRED");
});

test("a role that does not exist, a name that is taken, and a token that is not there are refused with what to do", async () => {
  expect(await cli("token", "create", "x", "--role", "root", ...home)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/Roles are viewer, reader, approver, operator, admin/),
  });
  expect(await cli("token", "create", "ann", "--role", "viewer", ...home)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/reprise token revoke ann/),
  });
  expect(await cli("token", "revoke", "absent", ...home)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/Its tokens are ann\.[\s\S]*reprise token list/),
  });
  expect(await cli("token", "create", "y", "--role", "viewer", "--expires", "soon", ...home)).toMatchObject({
    code: 2,
  });
  expect(await cli("token", "create", "y", "--role", "viewer", "--tags", "", ...home)).toMatchObject({ code: 2 });
});
