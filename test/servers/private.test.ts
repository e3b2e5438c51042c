import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { runQuery } from "./run-query.ts";
import { describeOn, fastFolder, freshDatabase, sharedServer, startServer } from "./index.ts";
import { isAlive, treeOf } from "./processes.ts";

const TIMEOUT = 240_000;
const SERVE = fileURLToPath(new URL("./serve.ts", import.meta.url));

async function firstLineOf(output: Readable): Promise<string> {
  for await (const line of createInterface(output)) return line;
  throw new Error("Expected a line; the process ended without one.");
}

for (const kind of ["postgres", "mysql"] as const) {
  describeOn(kind, kind, () => {
    test(
      "a killed server has its committed data after a restart, at the same address",
      { timeout: TIMEOUT },
      async () => {
        await using server = await startServer(kind);
        await using database = await freshDatabase(server);
        await database.run("create table notes (body text)", "insert into notes values ('kept')");
        const processes = treeOf(server.pid!);
        await server.kill();
        expect(processes.filter(isAlive)).toEqual([]);
        expect(server.pid).toBeUndefined();
        await expect(runQuery(database.url, "select 1")).rejects.toThrow("ECONNREFUSED");
        await server.start();
        expect(await runQuery(database.url, "select body from notes")).toEqual(["kept"]);
      },
    );

    test("a private server has the given settings, and new ones after a restart", { timeout: TIMEOUT }, async () => {
      const isMysql = kind === "mysql";
      const name = isMysql ? "innodb-flush-log-at-trx-commit" : "fsync";
      const query = isMysql ? "select @@innodb_flush_log_at_trx_commit" : "show fsync";
      const [weak, strong] = isMysql ? [2, 1] : ["off", "on"];
      await using server = await startServer(kind, { settings: { [name]: weak }, under: fastFolder() });
      expect(await runQuery(server.url, query)).toEqual([weak]);
      await server.stop();
      expect(server.pid).toBeUndefined();
      await server.start({});
      expect(await runQuery(server.url, query)).toEqual([strong]);
    });

    test("a server can be started by another program, in another environment", { timeout: TIMEOUT }, async () => {
      const script = 'echo "wrapped in $MOOD"; exec "$@"';
      const options = { wrap: ["/bin/sh", "-c", script, "sh"], env: { MOOD: "silk" }, under: fastFolder() };
      await using server = await startServer(kind, options);
      expect(await runQuery(server.url, "select 1")).toEqual([1]);
      expect(server.log()).toContain("wrapped in silk");
    });

    test("a server that cannot start reports why, and leaves no files", { timeout: TIMEOUT }, async () => {
      await expect(startServer(kind, { settings: { "no-such-setting": 1 }, under: fastFolder() })).rejects.toThrow(
        /no.such.setting/,
      );
    });

    test("a suspended server responds after it is resumed", { timeout: TIMEOUT }, async () => {
      await using server = await startServer(kind, { under: fastFolder() });
      server.signal("SIGSTOP");
      let isAnswered = false;
      const answer = runQuery(server.url, "select 1").finally(() => {
        isAnswered = true;
      });
      // A running server would have responded by then.
      await runQuery((await sharedServer(kind)).url, "select 1");
      expect(isAnswered).toBe(false);
      server.signal("SIGCONT");
      expect(await answer).toEqual([1]);
    });

    test("a server ends when its owner is killed, even a suspended one", { timeout: TIMEOUT }, async () => {
      const owner = spawn(process.execPath, [SERVE, kind], { stdio: ["pipe", "pipe", "inherit"] });
      onTestFinished(() => void owner.kill("SIGKILL"));
      const line = await firstLineOf(owner.stdout);
      const { pid, folder } = JSON.parse(line) as { readonly pid: number; readonly folder: string };
      const processes = treeOf(pid);
      expect(processes).toContain(pid);
      expect(existsSync(folder)).toBe(true);
      process.kill(pid, "SIGSTOP");
      owner.kill("SIGKILL");
      await expect.poll(() => processes.filter(isAlive), { timeout: TIMEOUT }).toEqual([]);
      await expect.poll(() => existsSync(folder), { timeout: TIMEOUT }).toBe(false);
    });
  });
}
