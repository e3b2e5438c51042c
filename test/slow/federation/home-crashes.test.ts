// T-07 on a home: a process is killed at every boundary of a statement that writes. No gap, nothing twice, at most a batch sent again.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHome } from "../../../src/federation/home/home.ts";
import { foldRecords, stateHashOf } from "../../../src/federation/log/state-hash.ts";
import { freshFolder, isOnDisk } from "../../federation/home/origin.ts";
import { crashOrigin, ENDS, erasedKey } from "./home-crash-log.ts";

/** Runs the process. Returns what it printed; undefined: it was killed. */
function ingestIn(folder: string, shards: number, kill: number): Promise<string | undefined> {
  const program = join(import.meta.dirname, "home-process.ts");
  const args = ["--conditions=reprise-source", program, folder, String(shards), String(kill)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (signal === "SIGKILL") resolve(undefined);
      else if (code === 0) resolve(printed.trim());
      else reject(new Error(`the process ended with ${code}`));
    });
  });
}

const edge = crashOrigin();
const expected = stateHashOf(foldRecords(edge.records));

/** What must hold after a kill, before anything is repaired: the home opens, and has whole batches. */
function checkAfterKill(folder: string, kill: number): void {
  const home = openHome(folder);
  try {
    const state = home.origin(edge.origin);
    if (state === undefined) return;
    const { size, cursor } = state;
    expect([0, ...ENDS.map(([end]) => end)], `cursor after ${kill}`).toContain(cursor);
    expect([0, 3, 6, 7], `size after ${kill}`).toContain(size);
    expect(home.readLog(edge.origin, 0, 100).map(({ rec }) => rec)).toEqual(edge.texts.slice(0, size));
    expect(home.stateHash(), `state after ${kill}`).toBe(stateHashOf(foldRecords(edge.records.slice(0, size))));
    expect(home.check(), `check after ${kill}`).toEqual([]);
    // Opening it has finished what was begun: nothing that is erased is here.
    if (size >= 5) {
      expect(home.contentState(erasedKey()), `erased after ${kill}`).toBe("erased");
      expect(isOnDisk(join(folder, "federation"), '"second"'), `on the disk after ${kill}`).toBe(false);
    }
    const keys = new Set(edge.records.slice(0, size).flatMap(({ k }) => k ?? []));
    if (size >= 5) keys.delete(erasedKey());
    expect(home.hasContents(keys), `contents after ${kill}`).toEqual(keys);
    expect(home.missing(), `missing after ${kill}`).toEqual([]);
  } finally {
    home.close();
  }
}

test(
  "a home whose process was killed anywhere has whole batches only, and the next process completes it",
  { timeout: 300_000 },
  async () => {
    const [opening = 0, all = 0] = (await ingestIn(freshFolder(), 2, 0))!.split(" ").map(Number);
    expect(all - opening).toBeGreaterThan(40);
    // Of the boundaries of a new home's first opening some will do.
    const kills = Array.from({ length: all }, (_, i) => i + 1).filter((kill) => kill > opening || kill % 7 === 0);
    const next = kills.values();
    const work = async (): Promise<void> => {
      for (const kill of next) {
        const folder = freshFolder();
        expect(await ingestIn(folder, 2, kill), `killed at ${kill} of ${all}`).toBeUndefined();
        checkAfterKill(folder, kill);
        const home = openHome(folder);
        home.admit(edge.key.vkey);
        const { cursor } = home.origin(edge.origin)!;
        const records = edge.texts.length - cursor;
        const outcome = home.ingest(edge.batch(home));
        expect(outcome, `completed after ${kill}`).toMatchObject(
          records === 0 ? { status: "unchanged" } : { status: "ingested", records },
        );
        expect(home.stateHash()).toBe(expected);
        expect(home.check()).toEqual([]);
        expect(home.contentState(erasedKey())).toBe("erased");
        // Again: nothing to do.
        expect(home.ingest(edge.batch(home))).toEqual({ status: "unchanged" });
        home.close();
      }
    };
    await Promise.all([work(), work()]);
  },
);

test(
  "processes that take the same log into one home at once do not disturb each other",
  { timeout: 120_000 },
  async () => {
    for (const shards of [1, 3]) {
      const folder = freshFolder();
      const printed = await Promise.all(Array.from({ length: 4 }, () => ingestIn(folder, shards, 0)));
      expect(printed).not.toContain(undefined);
      const home = openHome(folder);
      expect(home.stateHash()).toBe(expected);
      expect(home.check()).toEqual([]);
      expect(home.readLog(edge.origin, 0, 100).map(({ rec }) => rec)).toEqual(edge.texts);
      expect(home.conflicts()).toEqual([]);
      home.close();
    }
  },
);
