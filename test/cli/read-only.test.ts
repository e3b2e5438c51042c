// A SQLite file that cannot be written, in a folder that cannot be written: the commands that read it work.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { createEngine } from "reprise";
import type { CommandRequest } from "./cli-host.ts";
import { environment, ROOT, type Finished } from "./cli-process.ts";
import { loop } from "./graphs.ts";
import { pay, charge, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

// Every command is a process, which is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const DEFINITIONS = [pay, charge, review, loop];
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns(DEFINITIONS).start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "review-1", what: review, until: "waiting" },
    { id: "loop-1", what: loop, input: {}, until: "completed" },
  );

/** One process for all commands. Permissions do not bind root, so it then runs as a user without any. */
class Visitor implements Disposable {
  readonly #child: ChildProcess;
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
    const { NODE_COMPILE_CACHE: _cache, ...env } = environment();
    this.#child = fork(join(ROOT, "test/cli/cli-host.ts"), {
      execArgv: ["--conditions=reprise-source"],
      env,
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      ...(process.getuid?.() === 0 && { uid: 65_534, gid: 65_534 }),
    });
  }

  async cli(...args: readonly string[]): Promise<Finished> {
    const ended = once(this.#child, "message");
    this.#child.send({ args: [...args, "--store", this.#url], cwd: ROOT } satisfies CommandRequest);
    const [finished] = (await ended) as [Finished];
    return finished;
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }
}

function makeReadOnly(folder: string): void {
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444);
  chmodSync(folder, 0o555);
}

function contents(folder: string): readonly string[] {
  return readdirSync(folder).map((name) => {
    const { size, mtimeNs } = statSync(join(folder, name), { bigint: true });
    return [name, size, mtimeNs].join(" ");
  });
}

const READING = [
  ["list"],
  ["show", "review-1"],
  ["show", "loop-1"],
  ["show", "pay-1", "--watch"],
  ["journal", "pay-1"],
  ["doctor"],
  ["top", "--once"],
  ["queue", "list"],
  ["schedule", "list"],
  ["checkpoints", "loop-1"],
  ["checkpoints", "loop-1", "--step", "1"],
  ["diff", "loop-1", "loop-1"],
  ["verify", "pay-1", "test/cli/definitions.ts"],
  ["replay", "loop-1", "test/cli/graphs.ts", "--mode", "resume"],
] as const;

test.skipIf(process.platform === "win32")(
  "list, show, journal, doctor, verify and replay read a file that cannot be written",
  async () => {
    using store = await shop();
    const folder = store.folder.path;
    makeReadOnly(folder);
    const before = contents(folder);
    using visitor = new Visitor(store.url);
    try {
      for (const args of READING) {
        const { code, stderr } = await visitor.cli(...args);
        expect([args.join(" "), code, stderr]).toEqual([args.join(" "), 0, expect.not.stringContaining("error")]);
      }
      expect((await visitor.cli("doctor")).stdout).toContain("healthy");
      expect(contents(folder)).toEqual(before);
      const refused = await visitor.cli("cancel", "review-1");
      expect(refused.code).toBe(3);
      expect(refused.stderr).toMatch(/^error STORE_READ_ONLY: .*cannot be written; check their permissions/);
      expect(refused.stderr).toContain(`\`reprise list --store ${store.url}\``);
    } finally {
      chmodSync(folder, 0o755);
    }
  },
);

test.skipIf(process.platform === "win32")("they read it beside a worker of another user, too", async () => {
  using store = await shop();
  const folder = store.folder.path;
  await using engine = await createEngine({ store: store.url, definitions: DEFINITIONS, logger: SILENT });
  await (await engine.start(pay, 2, { id: "pay-2" })).result();
  makeReadOnly(folder);
  using visitor = new Visitor(store.url);
  try {
    expect((await visitor.cli("list", "--json")).stdout).toContain('"pay-2"');
    for (const args of READING) {
      const { code, stderr } = await visitor.cli(...args);
      expect([args.join(" "), code, stderr]).toEqual([args.join(" "), 0, expect.not.stringContaining("error")]);
    }
  } finally {
    chmodSync(folder, 0o755);
  }
});

test.skipIf(process.platform === "win32")(
  "a log that is not in the file yet cannot be read in such a folder, and the message says what to do",
  async () => {
    using store = await shop();
    const copy = store.folder.file("copy");
    mkdirSync(copy);
    {
      await using engine = await createEngine({ store: store.url, definitions: DEFINITIONS, logger: SILENT });
      await (await engine.start(pay, 2, { id: "pay-2" })).result();
      for (const name of ["shop.db", "shop.db-wal"]) copyFileSync(store.folder.file(name), join(copy, name));
    }
    makeReadOnly(copy);
    chmodSync(store.folder.path, 0o755);
    using visitor = new Visitor(`sqlite:${join(copy, "shop.db")}`);
    try {
      const { code, stderr } = await visitor.cli("list");
      expect([code, stderr]).toEqual([3, expect.stringMatching(/^error STORE_READ_ONLY: .*shop\.db has a log, /)]);
      expect(stderr).toContain(`cp ${join(copy, "shop.db")} ${join(copy, "shop.db-wal")} <folder>`);
    } finally {
      chmodSync(copy, 0o755);
    }
  },
);
