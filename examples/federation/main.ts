// Three sites on one machine, each a process with its own folder: an edge that works, a hub that relays and helps, an auditor that checks.

import { execFile, fork, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createFederation } from "reprise/federation";
import type { Plan } from "./shop.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-federation-example-"));
const children: ChildProcess[] = [];
try {
  const plan = await makePlan();
  const hub = start("hub.ts", plan);
  await once(hub, "message");
  const edge = start("edge.ts", plan);
  await once(edge, "message");
  await once(start("auditor.ts", plan), "exit");

  // Without the payloads and without the edge: the key of the edge suffices.
  for (const id of ["order-1", "order-2"]) await verify(join(folder, `${id}.jsonl`), plan.vkeys.edge);
} finally {
  for (const child of children) {
    const ended = child.exitCode === null ? once(child, "exit") : undefined;
    if (child.connected) child.disconnect();
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Operators exchange vkeys and tokens over a channel that they trust; here one process makes them all. */
async function makePlan(): Promise<Plan> {
  const vkeyOf = async (name: string): Promise<string> => {
    await using site = await createFederation({ home: join(folder, name, ".reprise"), name, sync: "manual" });
    return site.vkey;
  };
  const token = (): string => randomBytes(32).toString("hex");
  return {
    folder,
    vkeys: { edge: await vkeyOf("edge"), hub: await vkeyOf("hub"), auditor: await vkeyOf("auditor") },
    ports: { edge: await freePort(), hub: await freePort() },
    tokens: { edge: token(), auditor: token() },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function start(file: string, plan: Plan): ChildProcess {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(plan)]);
  children.push(child);
  child.once("exit", (code) => {
    if (code !== 0) console.error(`${file} ended with ${code}`);
  });
  return child;
}

/** `npx reprise verify <file> --key <vkey>` */
async function verify(file: string, vkey: string): Promise<void> {
  const cli = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
  const home = ["--home", join(folder, "empty")];
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...process.execArgv,
    ...[cli, "verify", file, "--level", "2", "--key", vkey, ...home],
  ]);
  console.log(`auditor  $ reprise verify: ${stdout.trim().split("\n")[0]}`);
}
