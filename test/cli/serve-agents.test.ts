// reprise serve for agents: a real server with tokens, and the official clients of MCP and A2A over its address.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { addToken } from "reprise/server";
import { message, outputOf, send } from "../a2a/a2a-client.ts";
import { callTool, newClient } from "../server/mcp-client.ts";
import { ROOT, startCli } from "./cli-process.ts";

const CODE = join(ROOT, "test/cli/agent-definitions.ts");

test("agents read, start and answer over the address of `reprise serve`, as far as their tokens go", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-agents-"));
  const home = ["--home", join(folder, "home")];
  const file = join(folder, "home", "tokens.json");
  const { token: operator } = addToken(file, { name: "partner", role: "operator" });
  const { token: reader } = addToken(file, { name: "assistant", role: "reader" });
  const store = ["--store", `sqlite:${join(folder, "runs.db")}`];
  const child = startCli(["serve", ...store, ...home, "--code", CODE, "--worker", "--port", "0", "--json"]);
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    const { url } = JSON.parse(line) as { url: string };

    const fetchImpl: typeof fetch = (address, init) => {
      const request = new Request(address, init);
      request.headers.set("authorization", `Bearer ${operator}`);
      return fetch(request);
    };
    const agent = await new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }).createFromUrl(url);
    const task = await send(agent, message("m1", 20));

    const client = newClient({ era: "modern" });
    const requestInit = { headers: { authorization: `Bearer ${reader}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
    const { tools } = await client.listTools();
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    expect((await callTool(client, "promises_list")).value.items).toMatchObject([
      { run: task.id, name: "approval", show: { amount: 20 } },
    ]);
    const done = await send(agent, message("m2", { ok: true }, { taskId: task.id }));
    expect(outputOf(done)).toBe("paid 20");
    expect((await callTool(client, "run_show", { run: task.id })).value).toMatchObject({ output: "paid 20" });
    await client.close();
  } finally {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    rmSync(folder, { recursive: true });
  }
});
