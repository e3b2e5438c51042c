// Processes: signals to a process and all its descendants. PostgreSQL gives each connection a process in its own session, so that
// a signal to the process group reaches none of them.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** The process itself, then its descendants. Empty when it has ended. */
export function treeOf(pid: number): readonly number[] {
  const childrenOf = Map.groupBy(allProcesses(), ({ parent }) => parent);
  const tree: number[] = isAlive(pid) ? [pid] : [];
  for (const each of tree) tree.push(...(childrenOf.get(each) ?? []).map((child) => child.pid));
  return tree;
}

/** Sends the signal to the whole tree; returns the pids it reached. */
export function signalTree(pid: number, signal: NodeJS.Signals): readonly number[] {
  // A stopped process starts no children while the list is read.
  if (signal === "SIGKILL") signalOne(pid, "SIGSTOP");
  const tree = treeOf(pid);
  for (const each of tree) signalOne(each, signal);
  return tree;
}

/** A zombie counts as ended. */
export function isAlive(pid: number): boolean {
  if (!existsSync("/proc/self/stat")) return signalOne(pid, 0);
  const stat = statOf(pid);
  return stat !== undefined && stat.state !== "Z";
}

function signalOne(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

interface Process {
  readonly pid: number;
  readonly parent: number;
}

function allProcesses(): readonly Process[] {
  if (!existsSync("/proc/self/stat")) return listedByPs();
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .flatMap((pid) => statOf(pid) ?? []);
}

function statOf(pid: number): (Process & { readonly state: string }) | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The program's name is in parentheses and may contain anything.
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, parent: Number(parent), state };
  } catch {
    return undefined;
  }
}

function listedByPs(): readonly Process[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => {
    const [pid = 0, parent = 0] = line.trim().split(/\s+/).map(Number);
    return { pid, parent };
  });
}
