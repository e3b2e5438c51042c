// What an editor shows while a graph is written: it offers the defined names, and an error lists them. Read from
// TypeScript's own server.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// Beside this file, so that its settings hold; it is sent to the server and never written.
const FILE = pathToFileURL(join(ROOT, "test/types/unwritten.ts")).href;

/** The language server, by its protocol: JSON with a header that says how long it is. */
function startServer(): {
  ask(method: string, params: object): Promise<unknown>;
  tell(method: string, params: object): void;
  end(): Promise<void>;
} {
  const { bin } = JSON.parse(readFileSync(join(ROOT, "node_modules/typescript/package.json"), "utf8")) as {
    bin: { tsc: string };
  };
  const program = join(ROOT, "node_modules/typescript", bin.tsc);
  const server = spawn(process.execPath, [program, "--lsp", "--stdio"], { stdio: ["pipe", "pipe", "ignore"] });
  const exited = once(server, "exit");
  const waiting = new Map<number, (answer: unknown) => void>();
  let read = Buffer.alloc(0);
  const write = (message: object): void => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  };
  server.stdout.on("data", (chunk: Buffer) => {
    read = Buffer.concat([read, chunk]);
    for (;;) {
      const header = /^(?:.+\r\n)*?Content-Length: (\d+)\r\n(?:.+\r\n)*\r\n/.exec(read.toString("latin1"));
      const end = header === null ? 0 : header[0].length + Number(header[1]);
      if (header === null || read.length < end) return;
      const message = JSON.parse(read.subarray(header[0].length, end).toString()) as {
        id?: number;
        method?: string;
        result?: unknown;
      };
      read = read.subarray(end);
      if (message.method === undefined) waiting.get(message.id ?? -1)?.(message.result);
      // The server asks for settings and registers abilities; nothing is as good an answer as any.
      else if (message.id !== undefined) write({ id: message.id, result: null });
    }
  });
  let asked = 0;
  return {
    ask(method, params) {
      const id = ++asked;
      write({ id, method, params });
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    tell: (method, params) => write({ method, params }),
    async end() {
      server.kill();
      await exited;
    },
  };
}

/** A server that has a document open. */
async function openDocument(text: string): Promise<ReturnType<typeof startServer>> {
  const server = startServer();
  await server.ask("initialize", { processId: process.pid, rootUri: pathToFileURL(ROOT).href, capabilities: {} });
  server.tell("initialized", {});
  server.tell("textDocument/didOpen", { textDocument: { uri: FILE, languageId: "typescript", version: 1, text } });
  return server;
}

const AGENT = `
import { append, createEngine, END, goto, graph, last, promise, START } from "reprise";
const agent = graph("agent", {
  state: { messages: append<string>(), answer: last<string | null>(null) },
  ports: { approval: promise<{ ok: boolean }>() },
})
  .node("think", async (ctx, state) => {
    state.‸;
    ctx.‸;
    await ctx.promise("‸");
    return { ‸ };
  })
  .node("act", async () => goto("think"))
  .node("each", async (_ctx, _state, item: { id: number }) => { item.‸; });
agent.edge("‸", "act");
agent.edge(START, "‸");
agent.spread("act", "‸", () => []);
agent.join(["‸"], "act");
`;

test("an editor offers the nodes, channels and ports that are there", async () => {
  const pieces = AGENT.split("‸");
  const server = await openDocument(pieces.join(""));
  try {
    const offered = async (place: number): Promise<string[]> => {
      const before = pieces
        .slice(0, place + 1)
        .join("")
        .split("\n");
      const position = { line: before.length - 1, character: before.at(-1)!.length };
      const answer = await server.ask("textDocument/completion", { textDocument: { uri: FILE }, position });
      const { items } = answer as { items: { label: string }[] };
      return items.map(({ label }) => label.replace(/\?$/, "")).toSorted();
    };
    expect(await offered(0)).toEqual(["answer", "messages"]);
    expect(await offered(1)).toEqual(expect.arrayContaining(["attempt", "label", "promise", "run", "step", "task"]));
    expect(await offered(2)).toEqual(["approval"]);
    expect(await offered(3)).toEqual(expect.arrayContaining(["answer", "messages"]));
    expect(await offered(4)).toEqual(["id"]);
    expect(await offered(5)).toEqual(["act", "each", "think"]);
    expect(await offered(6)).toEqual(["act", "think"]);
    expect(await offered(7)).toEqual(["each"]);
    expect(await offered(8)).toEqual(["act", "each", "think"]);
  } finally {
    await server.end();
  }
});

const BASE = `
import { append, createEngine, END, goto, graph, last, promise, START } from "reprise";
const agent = graph("agent", { state: { words: append<string>(), n: last(0) }, ports: { approval: promise<{ ok: boolean }>() } })
  .node("think", async () => {})
  .node("act", async () => {})
  .node("each", async (_ctx, _state, item: number) => ({ n: item }));
const lost = agent.node("goes", async () => goto("nowhere"));
`;
/** Each wrong in one way, and what is said about it. */
const WRONG: readonly (readonly [string, string])[] = [
  [`agent.edge("think", "missing");`, `'"missing"' is not assignable to parameter of type '"act" | "think" | End`],
  [
    `agent.edge("missing", "act");`,
    `'"missing"' is not assignable to parameter of type '"act" | "each" | "think" | Start'`,
  ],
  [`agent.spread("think", "act", () => [1]);`, `'"act"' is not assignable to parameter of type '"each"'`],
  [`agent.spread("think", "each", () => ["x"]);`, `Type 'string' is not assignable to type 'number'`],
  [`agent.join(["missing"], "act");`, `'"missing"' is not assignable to type '"act" | "each" | "think"'`],
  [`agent.node("act", async () => {});`, `"act\\" is already taken`],
  [`agent.node("x", async () => ({ n: 1, typo: 2 }));`, `no channel named \\"typo\\"`],
  [`agent.node("x", async () => ({ n: "one" }));`, `Type 'string' is not assignable to type 'number'`],
  [`agent.node("x", async () => goto("act", { n: 1, typo: 2 }));`, `no channel named \\"typo\\"`],
  [
    `agent.node("x", async (ctx) => void (await ctx.promise("typo")));`,
    `'"typo"' is not assignable to parameter of type '"approval"'`,
  ],
  [`agent.node("x", { retries: 3 }, async () => {});`, `'retries' does not exist in type`],
  [
    `agent.node("x", { effects: { requiresIdempotency: true } }, async () => {});`,
    `Property 'idempotencyKey' is missing`,
  ],
  [`void createEngine({ store: "sqlite::memory:", definitions: [lost] });`, `goto: no node named \\"nowhere\\"`],
];

test("an error message lists the defined names", async () => {
  const server = await openDocument(BASE + WRONG.map(([line]) => `${line}\n`).join(""));
  try {
    const answer = await server.ask("textDocument/diagnostic", { textDocument: { uri: FILE } });
    const { items } = answer as {
      items: { message: string; severity: number; range: { start: { line: number } } }[];
    };
    const errors = items.filter(({ severity }) => severity === 1);
    const first = BASE.split("\n").length - 1;
    const saidAt = (line: number): string[] =>
      errors.flatMap(({ message, range }) => (range.start.line === line ? [message] : []));
    for (const [index, [line, said]] of WRONG.entries())
      expect(saidAt(first + index), line).toEqual([expect.stringContaining(said)]);
    expect(errors).toHaveLength(WRONG.length);
  } finally {
    await server.end();
  }
});
