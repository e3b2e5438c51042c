// Server: a separate server for a measurement, with its default durability, started by test/servers/serve.ts.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export interface Server {
  readonly url: string;
  readonly pid: number;
  usage(): { readonly cpuMs: number; readonly peakRssMb: number };
}

export async function startServer(kind: "postgres" | "mysql"): Promise<Server> {
  // From the sources, in npm's working directory; it ends when this process closes its input, however it ends.
  const starter = spawn(process.execPath, ["--conditions=reprise-source", "test/servers/serve.ts", kind], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const line = await Promise.race([
    once(createInterface(starter.stdout), "line") as Promise<[string]>,
    once(starter, "exit").then(([code]) => {
      throw new Error(`No ${kind} server could be started (exit ${String(code)}).`);
    }),
  ]);
  const { url, pid } = JSON.parse(line[0]) as { url: string; pid: number };
  // An open pipe would keep this process alive.
  starter.unref();
  for (const stream of [starter.stdin, starter.stdout]) (stream as unknown as { unref(): void }).unref();
  return { url, pid, usage: () => usageOfTree(pid) };
}

/** Kernel ticks per second; the same on every Linux that Node supports. */
const TICKS = 100;

/** The usage of a process and its children, from /proc; zero where it does not exist. */
export function usageOfTree(root: number): { readonly cpuMs: number; readonly peakRssMb: number } {
  const stats = new Map<number, { parent: number; cpuMs: number; rssMb: number }>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      const cpuMs = ((Number(fields[11]) + Number(fields[12])) / TICKS) * 1_000;
      stats.set(Number(name), { parent: Number(fields[1]), cpuMs, rssMb: 0 });
    } catch {
      // The process has ended meanwhile.
    }
  }
  const isOurs = (pid: number): boolean => pid === root || (stats.has(pid) && isOurs(stats.get(pid)!.parent));
  let cpuMs = 0;
  for (const [pid, stat] of stats) if (isOurs(pid)) cpuMs += stat.cpuMs;
  // Shared memory would be counted once per process, so it is omitted.
  return { cpuMs, peakRssMb: 0 };
}
