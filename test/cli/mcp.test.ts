// reprise mcp: a real process. The official client speaks to it as an agent does; raw lines try what no client sends.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine } from "reprise";
import { callTool, ERAS, newClient, type ConnectOptions } from "../server/mcp-client.ts";
import { StoreRows } from "../server/store-rows.ts";
import { charge, pay, review } from "./definitions.ts";
import { cli, DEFINITIONS, environment, ROOT } from "./cli-process.ts";

const MAIN = ["--conditions=reprise-source", join(ROOT, "src/cli/main.ts")];
const folder = mkdtempSync(join(tmpdir(), "reprise-mcp-"));
const path = join(folder, "shop.db");
const STORE = ["--store", `sqlite:${path}`];

beforeAll(async () => {
  await using engine = await createEngine({
    store: `sqlite:${path}`,
    definitions: [charge, pay, review],
    logger: false,
  });
  await engine.start(review, undefined, { id: "review-1" });
  const paid = await engine.start(pay, 4990, { id: "pay-1" });
  await paid.result();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The official client on a process of its own. */
async function connect(
  args: readonly string[],
  options: ConnectOptions,
  stderr: "ignore" | "inherit" = "inherit",
): Promise<Client> {
  const client = newClient(options);
  const env = environment() as Record<string, string>;
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [...MAIN, "mcp", ...args], env, stderr }),
  );
  return client;
}

describe.each(ERAS)("a client of the %s protocol", (era) => {
  test("reads runs, and finds no tool that changes one", async () => {
    using rows = new StoreRows(path);
    const before = rows.read();
    const client = await connect(STORE, { era });
    const { tools } = await client.listTools();
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    expect(tools.map(({ name }) => name)).toContain("doctor");
    const { items } = (await callTool(client, "runs_list")).value as { items: { id: string }[] };
    expect(items.map(({ id }) => id)).toEqual(expect.arrayContaining(["pay-1", "review-1"]));
    expect((await callTool(client, "run_why", { run: "review-1" })).value.status).toBe("waiting");
    expect((await callTool(client, "doctor")).value).toMatchObject({ problems: [] });
    const { contents } = await client.readResource({ uri: "reprise://runs/pay-1" });
    expect(contents[0]).toMatchObject({ text: expect.stringContaining('"status":"completed"') });
    for (const name of ["run_cancel", "promise_resolve", "start_pay"])
      await expect(client.callTool({ name, arguments: { run: "review-1" } })).rejects.toMatchObject({ code: -32_602 });
    await client.close();
    expect(rows.read()).toEqual(before);
  });

  test("starts, executes and answers what --allow names", async () => {
    const allow = ["--code", DEFINITIONS, "--worker", "--allow", "pay,review", "--allow", "promise_resolve"];
    const client = await connect([...STORE, ...allow], { era });
    const { tools } = await client.listTools();
    expect(tools.filter(({ annotations }) => annotations?.readOnlyHint === false).map(({ name }) => name)).toEqual([
      "promise_resolve",
      "start_pay",
      "start_review",
    ]);
    expect(await callTool(client, "start_pay", { input: 20, id: `pay-${era}` })).toMatchObject({
      isError: false,
      value: { run: `pay-${era}`, status: "completed", output: { at: "1970-01-01T00:00:00.000Z" } },
    });
    const answer = { run: `review-${era}`, port: "approval", value: { ok: true } };
    // Sent while the first call waits for the end of the run.
    const started = callTool(client, "start_review", { id: `review-${era}` });
    for (;;) {
      const open = (await callTool(client, "promises_list")).value.items as { run: string }[];
      if (open.some(({ run }) => run === `review-${era}`)) break;
    }
    expect((await callTool(client, "promise_resolve", answer)).isError).toBe(false);
    expect((await started).value).toMatchObject({ status: "completed", output: true });
    await client.close();
  });
});

test("what the code of the user prints does not reach the client", async () => {
  const code = join(ROOT, "test/cli/printing-definitions.ts");
  const args = [...STORE, "--code", code, "--worker", "--allow"];
  const client = await connect(args, { era: "modern" }, "ignore");
  expect((await callTool(client, "start_printing", { id: "printing-1" })).value).toMatchObject({ output: "printed" });
  await client.close();
});

test("a name that --allow does not know is refused before a message is read", async () => {
  const args = ["mcp", ...STORE, "--code", DEFINITIONS, "--allow", "pay,nothing"];
  const { code, stdout, stderr } = await cli(args);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain('there is no tool "nothing"');
  expect((await cli(["mcp", ...STORE, "--worker"])).stderr).toContain("--worker executes code");
});

interface Answer {
  readonly jsonrpc: string;
  readonly id: unknown;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

class RawClient implements AsyncDisposable {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;
  #id = 0;

  constructor() {
    const store = ["--store", `sqlite:${join(folder, "none.db")}`];
    this.child = spawn(process.execPath, [...MAIN, "mcp", ...store], {
      env: environment(),
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#reader = createInterface({ input: this.child.stdout });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  send(text: string): void {
    this.child.stdin.write(`${text}\n`);
  }

  /** Every line of the output is one message. */
  async next(): Promise<Answer> {
    return JSON.parse(String((await this.#lines.next()).value)) as Answer;
  }

  async request(method: string, params?: object): Promise<Answer> {
    const id = ++this.#id;
    this.send(JSON.stringify({ jsonrpc: "2.0", id, method, ...(params && { params }) }));
    const answer = await this.next();
    expect([answer.jsonrpc, answer.id]).toEqual(["2.0", id]);
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
  }
}

test("without a store, an agent lists, reads and searches the documents; the end of the input ends the process", async () => {
  await using client = new RawClient();
  const { result } = await client.request("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  });
  expect(result).toMatchObject({
    protocolVersion: "2025-06-18",
    serverInfo: { name: "reprise" },
    capabilities: { resources: {}, tools: {} },
  });
  client.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  expect((await client.request("ping")).result).toEqual({});
  // A version that the server does not know gets its newest.
  expect((await client.request("initialize", { protocolVersion: "1999-01-01" })).result.protocolVersion).toBe(
    "2025-11-25",
  );

  const uris: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = (await client.request("resources/list", cursor === undefined ? {} : { cursor })).result as {
      resources: { uri: string; name: string; description: string; mimeType: string }[];
      nextCursor?: string;
    };
    uris.push(...page.resources.map(({ uri }) => uri));
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  expect(new Set(uris).size).toBe(uris.length);
  for (const name of ["llms.txt", "SKILL.md", "guides/webhooks.md", "errors/STORE_BUSY.md", "reference/errors.md"])
    expect(uris).toContain(`reprise://docs/${name}`);

  const read = await client.request("resources/read", { uri: "reprise://docs/SKILL.md" });
  expect(read.result.contents).toEqual([
    { uri: "reprise://docs/SKILL.md", mimeType: "text/markdown", text: readFileSync(join(ROOT, "SKILL.md"), "utf8") },
  ]);
  const templates = await client.request("resources/templates/list");
  expect(templates.result.resourceTemplates[0].uriTemplate).toBe("reprise://docs/errors/{code}.md");
  const runs = await client.request("tools/call", { name: "runs_list", arguments: {} });
  expect(runs.result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("BAD_STORE_URL") }] });
  const found = await client.request("tools/call", {
    name: "search_docs",
    arguments: { query: "webhook signature retry-after" },
  });
  expect(found.result.content[0].text).toContain("reprise://docs/guides/webhooks.md");
  // A decision has both words in its title; the guide says how to make one.
  const links = await client.request("tools/call", { name: "search_docs", arguments: { query: "approval link" } });
  expect(links.result.content[0].text).toMatch(/^reprise:\/\/docs\/(?!decisions)/);

  client.child.stdin.end();
  expect(await once(client.child, "exit")).toEqual([0, null]);
});

test("what is not a request is answered with an error, and the server continues", async () => {
  await using client = new RawClient();
  const codeOf = async (text: string): Promise<number | undefined> => {
    client.send(text);
    return (await client.next()).error?.code;
  };
  expect(await codeOf("{")).toBe(-32_700);
  expect(await codeOf("[]")).toBe(-32_600);
  expect(await codeOf("1")).toBe(-32_600);
  expect(await codeOf('{"jsonrpc":"1.0","id":1,"method":"ping"}')).toBe(-32_600);
  expect((await client.request("nothing/here")).error?.code).toBe(-32_601);
  expect((await client.request("resources/read", {})).error?.code).toBe(-32_602);
  expect((await client.request("resources/list", { cursor: "x" })).error?.code).toBe(-32_602);
  for (const uri of ["reprise://docs/../package.json", "reprise://docs/guides/none.md", "file:///etc/passwd"])
    expect((await client.request("resources/read", { uri })).error).toMatchObject({ code: -32_002, data: { uri } });
  expect((await client.request("tools/call", { name: "rm" })).error?.code).toBe(-32_602);
  expect((await client.request("tools/call", { name: "search_docs", arguments: {} })).result.isError).toBe(true);
  const huge = "x".repeat(9 * 1024 * 1024);
  expect(await codeOf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${huge}"}}`)).toBe(-32_700);
  expect(await codeOf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":${"[".repeat(100_000)}`)).toBe(-32_700);
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  expect(await codeOf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${deep}}}`)).toBe(-32_700);
  expect((await client.request("ping")).result).toEqual({});
  // A batch, with a notification in it.
  client.send('[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]');
  expect(await client.next()).toEqual([{ jsonrpc: "2.0", id: "a", result: {} }]);
  client.child.kill("SIGTERM");
  expect(await once(client.child, "exit")).toEqual([143, null]);
});
