// reprise serve: the API, the dashboard and answers for other sites at one address.

import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import {
  cli,
  command,
  DEFINITIONS,
  finished,
  jsonLines,
  matchOutput,
  startCli,
  TemporaryFolder,
} from "./cli-process.ts";

const HTML = { headers: { accept: "text/html" } };

test("in a folder without federation it serves the API and the dashboard, and creates neither key nor log", async () => {
  using folder = new TemporaryFolder();
  const home = folder.file("home");
  const store = ["--store", `sqlite:${folder.file("shop.db")}`, "--home", home];
  const tokens = ["--tokens", folder.file("team.json")];
  const child = startCli(["serve", "--port", "0", "--code", DEFINITIONS, "--worker", ...tokens, ...store]);
  const ended = finished(child);
  const [, address = ""] = await matchOutput(child, /serving (http:\S+)/);
  expect(await (await fetch(`${address}/openapi.json`)).json()).toMatchObject({ openapi: "3.1.0" });
  expect((await fetch(`${address}/runs`, HTML)).headers.get("content-security-policy")).toContain("script-src 'self'");
  const refused = await fetch(`${address}/v1/events`);
  expect(refused.status).toBe(401);
  expect(await refused.json()).toMatchObject({
    code: "TOKEN_REQUIRED",
    hint: expect.stringContaining("reprise token") as string,
  });
  expect((await fetch(`${address}/`)).status).toBe(404);
  child.kill("SIGTERM");
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout).not.toMatch(/vkey|login#/);
  expect(stdout).toMatch(/reprise token create <name> --role <role> --file \S*team\.json/);
  expect([existsSync(`${home}/federation.db`), existsSync(`${home}/key`)]).toEqual([false, false]);
});

test("in the folder of a site it answers other sites, programs and browsers at the same address", async () => {
  using folder = new TemporaryFolder();
  const site = ["--store", `sqlite:${folder.file("shop.db")}`, "--home", folder.file("home")];
  expect((await cli(["run", DEFINITIONS, "greet", '"Ada"', ...site])).code).toBe(0);
  expect((await cli(["fed", "on", ...site])).code).toBe(0);
  const child = startCli(["serve", "--port", "0", "--json", "--no-sync", ...site]);
  const ended = finished(child);
  const [line = ""] = await matchOutput(child, /^.*"url".*\n/);
  const { url, vkey } = jsonLines(line)[0] as { url: string; vkey: string };
  expect(vkey).toContain("+");
  expect(await (await fetch(`${url}/`)).json()).toMatchObject({ reprise: "federation/1" });
  expect((await fetch(`${url}/`, HTML)).headers.get("content-type")).toMatch(/^text\//);
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
  // A refusal has the form of the table that has the route.
  expect(await (await fetch(`${url}/run/x`)).json()).toEqual({
    code: "NOT_ADMITTED",
    message: expect.any(String) as string,
  });
  child.kill("SIGTERM");
  expect((await ended).code).toBe(0);
});

test("an address that other machines reach is refused without tokens, and a worker without code", async () => {
  using folder = new TemporaryFolder();
  const site = ["--store", `sqlite:${folder.file("shop.db")}`, "--home", folder.file("home")];
  const exposed = await command(["serve", "--host", "0.0.0.0", "--expose", "--code", DEFINITIONS, ...site]);
  expect(exposed).toMatchObject({ code: 2, stderr: expect.stringContaining("there are no tokens") as string });
  expect(await command(["serve", "--worker", ...site])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--code <file>") as string,
  });
});
