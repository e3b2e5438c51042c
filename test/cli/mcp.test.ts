// reprise mcp: a real process, spoken to as an agent does: initialize, list, read, search, errors, the end of the input and signals.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { expect, test } from "vitest";
import { environment, ROOT } from "./cli-process.ts";

interface Answer {
  readonly jsonrpc: string;
  readonly id: unknown;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

class McpClient implements AsyncDisposable {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;
  #id = 0;

  constructor() {
    this.child = spawn(process.execPath, ["--conditions=reprise-source", join(ROOT, "src/cli/main.ts"), "mcp"], {
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

test("an agent initializes, lists, reads and searches the documents; the end of the input ends the process", async () => {
  await using client = new McpClient();
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
  const { tools } = (await client.request("tools/list")).result as { tools: { name: string; annotations: object }[] };
  expect(tools).toMatchObject([{ name: "search_docs", annotations: { readOnlyHint: true } }]);
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
  await using client = new McpClient();
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
  // A batch, with a notification in it.
  client.send('[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]');
  expect(await client.next()).toEqual([{ jsonrpc: "2.0", id: "a", result: {} }]);
  client.child.kill("SIGTERM");
  expect(await once(client.child, "exit")).toEqual([143, null]);
});
