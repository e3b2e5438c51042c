// reprise dev: a worker that restarts on file changes and prints run events.

import { renameSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createClient, promise, stream, workflow, type RepriseError } from "reprise";
import { createHttpClient } from "reprise/client";
import {
  cli,
  finished,
  isInstalled,
  jsonLines,
  matchOutput,
  waitForOutput,
  startCli,
  startOnTerminal,
  TemporaryFolder,
} from "./cli-process.ts";

const client = workflow("greet", { ports: { name: promise<string>() } }, () =>
  Promise.reject(new Error("not run here")),
);

const declared = workflow("greet", { ports: { name: promise<string>(), words: stream<string>() } }, () =>
  Promise.reject(new Error("not run here")),
);

/** A project of two files. A file is replaced, as editors do it. */
class Project extends TemporaryFolder {
  readonly url = `sqlite:${this.file("shop.db")}`;

  write(name: string, text: string): void {
    writeFileSync(this.file(`${name}.new`), text);
    renameSync(this.file(`${name}.new`), this.file(name));
  }

  writeAll(greeting: string): void {
    this.write("greeting.mjs", `export const greeting = ${JSON.stringify(greeting)};`);
    this.write(
      "flows.mjs",
      `import { promise, workflow } from ${JSON.stringify(import.meta.resolve("reprise"))};
       import { greeting } from "./greeting.mjs";
       export const greet = workflow("greet", { ports: { name: promise() } }, async (ctx) => {
         const name = await ctx.promise("name");
         return ctx.run("say", () => greeting + ", " + name);
       });`,
    );
  }
}

test("a change of an imported file restarts the worker; runs continue with the new code; Ctrl-C drains and exits with 0", async () => {
  using project = new Project();
  project.writeAll("Hello");
  const child = startCli(["dev", "flows.mjs", "--store", project.url], { cwd: project.path });
  const ended = finished(child);
  await waitForOutput(child, "ready: greet");
  await using engine = await createClient({ store: project.url, definitions: [client] });
  const asked = waitForOutput(child, "○ name");
  const before = await engine.start(client, undefined, { id: "greet-1" });
  await asked;

  const ready = waitForOutput(child, "ready: greet");
  project.write("greeting.mjs", 'export const greeting = "Moin";');
  await ready;
  await before.resolve("name", "Ada");
  expect(await before.result()).toBe("Moin, Ada");

  child.kill("SIGINT");
  const { code, stdout } = await ended;
  expect(code).toBe(130);
  expect(stdout).toMatch(/watching .*flows\.mjs/);
  expect(stdout).toMatch(/greet-1 +· started\n/);
  expect(stdout).toMatch(/changed .*greeting\.mjs\n.*ready: greet\n/);
  expect(stdout).toMatch(/greet-1 +· resumed +after 2 entries\n.*● name +resolved/);
  expect(stdout.match(/● completed/g)).toHaveLength(1);
  const [report] = jsonLines((await cli(["doctor", "--json", "--store", project.url])).stdout);
  expect(report).toMatchObject({ healthy: true, store: { workers: [] } });
});

test("dev names the line of a file that cannot be loaded, and tries again after a change", async () => {
  using project = new Project();
  project.writeAll("Hello");
  project.write("flows.mjs", 'import "./missing.mjs";\n');
  const child = startCli(["dev", "flows.mjs", "--store", project.url], { cwd: project.path });
  const ended = finished(child);
  await waitForOutput(child, "waiting for a file change");
  const failedAgain = waitForOutput(child, "at load");
  project.write("missing.mjs", 'throw new Error("at load");');
  await failedAgain;
  const ready = waitForOutput(child, "ready: greet");
  project.writeAll("Hello");
  await ready;
  child.kill("SIGTERM");
  const { code, stderr } = await ended;
  expect(code).toBe(143);
  expect(stderr).toMatch(/error USAGE: .*flows\.mjs cannot be loaded: Error: Cannot find module/);
  expect(stderr).toMatch(/error USAGE: .*flows\.mjs cannot be loaded: Error: at load \(missing\.mjs:1\)/);
  expect(stderr).toContain("next: reprise dev --help");
});

test("the dashboard keeps its address while the worker restarts, and answers while the file cannot be loaded", async () => {
  using project = new Project();
  project.writeAll("Hello");
  const child = startCli(["dev", "flows.mjs", "--store", project.url, "--home", project.file("home")], {
    cwd: project.path,
  });
  const ended = finished(child);
  const [, address = "", code = ""] = await matchOutput(child, /dashboard (http:\/\/127\.0\.0\.1:\d+)\/login#(\S+)/);
  const signedIn = await fetch(`${address}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-reprise": "1" },
    body: JSON.stringify({ code }),
  });
  expect(signedIn.ok, await signedIn.text()).toBe(true);
  // A connection that the client kept is closed when another process answers.
  const page = { headers: { accept: "text/html", connection: "close" } };
  expect((await fetch(`${address}/runs`, page)).status).toBe(200);
  // The worker has the code; the command itself has none.
  const failed = waitForOutput(child, "waiting for a file change");
  project.write("flows.mjs", 'import "./missing.mjs";\n');
  await failed;
  expect((await fetch(`${address}/runs`, page)).status).toBe(200);
  const ready = waitForOutput(child, "ready: greet");
  project.writeAll("Hello");
  await ready;
  expect((await fetch(`${address}/openapi.json`)).status).toBe(200);
  child.kill("SIGTERM");
  expect((await ended).stdout.match(/dashboard/g)).toHaveLength(1);
});

test("a worker that SIGKILL ends is restarted, later each time; the address stays, and a stream resumes by its offset", async () => {
  using project = new Project();
  project.write(
    "flows.mjs",
    `import { promise, stream, workflow } from ${JSON.stringify(import.meta.resolve("reprise"))};
     export const greet = workflow("greet", { ports: { name: promise(), words: stream() } }, async (ctx) => {
       ctx.emit("words", "pid " + (await ctx.run("pid", () => process.pid)));
       ctx.emit("words", await ctx.promise("name"));
       ctx.emit("words", "pid " + (await ctx.run("pid", () => process.pid)));
     });`,
  );
  const home = project.file("home");
  const token = (await cli(["token", "create", "ann", "--role", "operator", "--home", home])).stdout.trim();
  const child = startCli(["dev", "flows.mjs", "--json", "--store", project.url, "--home", home], { cwd: project.path });
  const ended = finished(child);
  const [, url = ""] = await matchOutput(child, /"dev.serving","url":"([^"]+)"/);
  const http = createHttpClient({ url, token, definitions: [declared] });
  // Until a worker is ready, the command itself answers, and it knows no definitions.
  const startRun = (id: string): Promise<void> =>
    expect
      .poll(() =>
        http.start(declared, undefined, { id }).then(
          (run) => run.id,
          ({ code }: RepriseError) => code,
        ),
      )
      .toBe(id);
  await startRun("declared-1");
  const run = http.get(declared, "declared-1");
  const words = run.stream("words");
  const word = async (): Promise<string | undefined> => (await words.next()).value?.value;
  const pidOf = async (): Promise<number> => Number(/pid (\d+)/.exec(String(await word()))?.[1]);
  const first = await pidOf();

  const restarted = matchOutput(child, /"dev.killed","signal":"SIGKILL","delayMs":0\}[^]*"dev.ready"/);
  process.kill(first, "SIGKILL");
  await restarted;
  await run.resolve("name", "Ada");
  expect(await word()).toBe("Ada");
  const second = await pidOf();
  expect(second).not.toBe(first);
  expect((await words.next()).done).toBe(true);

  // No worker for a second: the command itself answers.
  const waits = waitForOutput(child, '"dev.killed","signal":"SIGKILL","delayMs":1000}');
  const ready = waitForOutput(child, '"dev.ready"');
  process.kill(second, "SIGKILL");
  await waits;
  expect(await http.find("declared-1")).toMatchObject({ status: "completed" });
  await ready;
  await startRun("declared-2");
  child.kill("SIGTERM");
  expect((await ended).code).toBe(143);
});

test("with --json every line is one JSON value; a second Ctrl-C leaves no process behind", async () => {
  using project = new Project();
  project.writeAll("Hello");
  project.write(
    "flows.mjs",
    `import { workflow } from ${JSON.stringify(import.meta.resolve("reprise"))};
     export const stuck = workflow("greet", async (ctx) => ctx.run("stuck", () => new Promise(() => setInterval(() => {}, 1000))));`,
  );
  const child = startCli(["dev", "flows.mjs", "--json", "--store", project.url], { cwd: project.path });
  const ended = finished(child);
  await waitForOutput(child, "dev.ready");
  {
    await using engine = await createClient({ store: project.url, definitions: [client] });
    const seen = waitForOutput(child, "RunStarted");
    await engine.start(client, undefined, { id: "stuck-1" });
    await seen;
  }
  child.kill("SIGINT");
  await waitForOutput(child, "dev.stopping");
  child.kill("SIGINT");
  // The streams end when the last process that holds them has exited.
  const { code, stdout } = await ended;
  expect(code).toBe(130);
  const lines = jsonLines(stdout);
  expect(lines.flatMap(({ event }) => (event === undefined ? [] : [event as string]))).toEqual([
    "dev.started",
    "dev.serving",
    "dev.ready",
    "dev.stopping",
  ]);
  expect(lines.find(({ entry }) => entry !== undefined)).toMatchObject({
    run: "stuck-1",
    entry: { type: "RunStarted" },
  });
});

test(
  "Ctrl-C on a terminal reaches both processes, and both exit cleanly",
  { skip: !isInstalled("script") },
  async () => {
    using project = new Project();
    project.writeAll("Hello");
    const child = startOnTerminal(["dev", "flows.mjs", "--store", project.url], { cwd: project.path });
    const ended = finished(child);
    await waitForOutput(child, "ready: greet");
    child.stdin.write("\u0003");
    const { code, stdout } = await ended;
    expect([code, stdout]).toEqual([130, expect.stringContaining("stopping: waiting for running steps to finish")]);
    const [report] = jsonLines((await cli(["doctor", "--json", "--store", project.url])).stdout);
    expect(report).toMatchObject({ healthy: true, store: { workers: [] } });
  },
);

test("dev refuses a missing file and a store in memory", async () => {
  using project = new Project();
  const missing = await cli(["dev", "nowhere.ts"], { cwd: project.path });
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("There is no file")]);
  const memory = await cli(["dev", "nowhere.ts", "--store", "sqlite::memory:"], { cwd: project.path });
  expect(memory.code).toBe(3);
});
