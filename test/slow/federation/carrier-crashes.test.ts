// A writer of a directory dies by SIGKILL at each change that it makes to the disk.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openCarrier, type Carrier } from "../../../src/federation/index.ts";
import { noise } from "../../federation/carrier-cases.ts";
import { PORTS } from "../../federation/carriers/real-ports.ts";

const WRITER = fileURLToPath(new URL("../../federation/carriers/crash-writer.ts", import.meta.url));
const PATH = "edge7/56475aa75463474c/checkpoint";
const [OLD, NEW] = [noise(50_000, 1), noise(50_000, 2)];

/** The number of changes of a writer that was not killed. */
async function write(folder: string, kill: number, scenario: string): Promise<number | undefined> {
  const child = spawn(process.execPath, ["--conditions=reprise-source", WRITER, folder, String(kill), scenario], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (signal === "SIGKILL") return undefined;
  expect(code).toBe(0);
  return Number(said);
}

async function contentOf(carrier: Carrier): Promise<"old" | "new" | "absent" | "damaged"> {
  const file = await carrier.get(PATH);
  if (file === undefined || file === "unchanged") return "absent";
  if (Buffer.from(OLD).equals(file.bytes)) return "old";
  return Buffer.from(NEW).equals(file.bytes) ? "new" : "damaged";
}

test.each([
  { scenario: "create", before: "absent", after: "new", least: 11 },
  { scenario: "replace", before: "old", after: "new", least: 5 },
  { scenario: "remove", before: "old", after: "absent", least: 2 },
])(
  "a writer that dies at any change of $scenario leaves the file $before or $after, and no lock",
  { timeout: 120_000 },
  async ({ scenario, before, after, least }) => {
    const seen = new Set<string>();
    let total: number | undefined;
    for (let kill = 1; total === undefined; kill += 1) {
      const folder = mkdtempSync(join(tmpdir(), "carrier-"));
      try {
        const carrier = await openCarrier(folder, PORTS);
        if (before === "old") await carrier.put!(PATH, OLD, { match: null });
        total = await write(folder, kill, scenario);
        const content = await contentOf(carrier);
        expect([before, after]).toContain(content);
        seen.add(content);
        expect(await Array.fromAsync(carrier.list!(""))).toEqual(content === "absent" ? [] : [PATH]);
        // The next writer succeeds: no lock and no half file stands in its way.
        const file = await carrier.get(PATH);
        const match = file === undefined || file === "unchanged" ? null : file.etag;
        expect(await carrier.put!(PATH, noise(100, 3), { match })).not.toBe("refused");
        await carrier.remove!(PATH);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }
    expect(total).toBeGreaterThanOrEqual(least);
    expect([...seen].sort()).toEqual([before, after].sort());
  },
);
