// Three sites as processes of the command line, killed in between: edge, hub and auditor converge, and the auditor's verdict is the edge's.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { cli, environment, jsonLines, ROOT, TemporaryFolder, type Finished } from "../cli/cli-process.ts";

const CODE = join(ROOT, "test/cli/definitions.ts");
const children = new Set<ChildProcess>();
afterEach(async () => {
  await Promise.all([...children].map(stop));
});

class CliSite {
  readonly name: string;
  readonly folder: string;
  #serving: ChildProcess | undefined;

  constructor(root: TemporaryFolder, name: string) {
    this.name = name;
    this.folder = root.file(name);
    mkdirSync(this.folder);
  }

  get #global(): readonly string[] {
    return ["--home", join(this.folder, ".reprise"), "--store", `sqlite:${join(this.folder, "shop.db")}`];
  }

  /** The command without a store, for sites that have none. */
  bare(...args: readonly string[]): Promise<Finished> {
    return cli([...args, "--home", join(this.folder, ".reprise")], { cwd: this.folder });
  }

  async run(...args: readonly string[]): Promise<Finished> {
    return cli([...args, ...this.#global], { cwd: this.folder });
  }

  async vkey(): Promise<string> {
    return jsonLines((await this.bare("key", "--name", this.name, "--json")).stdout)[0]!["vkey"] as string;
  }

  configure(settings: object): void {
    const file = join(this.folder, ".reprise", "federation.json");
    writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  }

  /** Starts `reprise serve`, and waits until it answers. */
  async serve(port: number, hasStore: boolean): Promise<void> {
    const args = ["serve", "--port", String(port), "--json"];
    const global = hasStore ? this.#global : ["--home", join(this.folder, ".reprise")];
    const child = spawn(
      process.execPath,
      ["--conditions=reprise-source", join(ROOT, "src/cli/main.ts"), ...args, ...global],
      {
        cwd: this.folder,
        env: environment(),
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    children.add(child);
    this.#serving = child;
    await once(child.stdout!, "data");
  }

  /** SIGKILL: nothing is cleaned up. */
  async kill(): Promise<void> {
    if (this.#serving !== undefined) await stop(this.#serving);
  }

  async status(hasStore: boolean): Promise<Record<string, any>> {
    const { stdout } = await (hasStore ? this.run("fed", "status", "--json") : this.bare("fed", "status", "--json"));
    return jsonLines(stdout)[0]!;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

const tokens = { edge: "edge-0123456789abcdef", auditor: "auditor-0123456789abcdef" };

test(
  "edge, hub and auditor are killed in between and converge; the auditor verifies the same output",
  { timeout: 240_000 },
  async () => {
    using root = new TemporaryFolder();
    const [edge, hub, auditor] = [new CliSite(root, "edge"), new CliSite(root, "hub"), new CliSite(root, "auditor")];
    const vkeys = { edge: await edge.vkey(), hub: await hub.vkey(), auditor: await auditor.vkey() };
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    edge.configure({
      peers: { hub: { url, vkey: vkeys.hub, token: tokens.edge, push: true } },
      publish: [{ to: ["hub"], payloads: "full" }],
    });
    hub.configure({
      peers: {
        edge: { vkey: vkeys.edge, token: tokens.edge },
        auditor: { vkey: vkeys.auditor, token: tokens.auditor },
      },
      publish: [{ to: ["auditor"], origins: ["edge/*"], payloads: "full" }],
    });
    auditor.configure({
      peers: { hub: { url, vkey: vkeys.hub, token: tokens.auditor, pull: ["*"] }, edge: { vkey: vkeys.edge } },
    });

    expect(await edge.run("run", CODE, "pay", "100", "--id", "pay-0")).toMatchObject({ code: 0 });
    expect(await edge.run("fed", "on")).toMatchObject({ code: 0 });
    await hub.serve(port, false);
    await edge.serve(await freePort(), true);
    for (const id of ["pay-1", "pay-2", "pay-3"]) {
      expect(await edge.run("run", CODE, "pay", "4990", "--id", id)).toMatchObject({ code: 0 });
      // In turn: whatever each of them was doing, nothing is lost or doubled.
      if (id === "pay-1") {
        await hub.kill();
        await hub.serve(port, false);
      }
      if (id === "pay-2") {
        await edge.kill();
        await edge.serve(await freePort(), true);
      }
    }
    const sizeAt = async (site: CliSite, hasStore: boolean): Promise<unknown> => {
      const { origins } = await site.status(hasStore);
      return (origins as { origin: string; size: number }[]).find(({ origin }) => origin === vkeys.edge.split("+")[0])
        ?.size;
    };
    await expect.poll(() => sizeAt(hub, false), { timeout: 60_000 }).toBe(8);
    expect(await auditor.bare("pull", "hub")).toMatchObject({ code: 0, stdout: /^pulled hub: 8 records/ });

    const snapshots = [
      await edge.run("snapshot", "create", "--json"),
      await hub.bare("snapshot", "create", "--json"),
      await auditor.bare("snapshot", "create", "--json"),
    ].map(({ stdout }) => jsonLines(stdout)[0]!);
    expect(new Set(snapshots.map(({ id }) => id as string)).size).toBe(1);
    expect(new Set(snapshots.map(({ stateHash }) => stateHash as string)).size).toBe(1);

    expect(await auditor.bare("pull", "hub", "pay-3", "--as", "edge")).toMatchObject({ code: 0 });
    const [home] = jsonLines((await edge.run("verify", "pay-3", "--code", CODE, "--json")).stdout);
    const [there] = jsonLines((await auditor.bare("verify", "edge/pay-3", "--code", CODE, "--json")).stdout);
    const outputOf = (line: Record<string, any>): unknown =>
      (line["runs"] as { verdict: string; output: string; digest: string }[]).map(({ verdict, output, digest }) => ({
        verdict,
        output,
        digest,
      }));
    expect(outputOf(there!)).toEqual(outputOf(home!));
    expect(outputOf(there!)).toMatchObject([{ verdict: "verified" }]);

    const bundles = root.file("bundles");
    expect(await auditor.bare("pull", "hub", "pay-1", "--out", bundles)).toMatchObject({ code: 0 });
    expect(readFileSync(join(bundles, "pay-1.jsonl"), "utf8")).toContain(vkeys.edge.split("+")[0]);
    expect(await auditor.bare("verify", join(bundles, "pay-1.jsonl"), "--level", "2")).toMatchObject({ code: 0 });
  },
);
