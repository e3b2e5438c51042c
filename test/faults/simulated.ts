// Simulated: the simulation's part of the report, run by `npm run sim`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../simulation/main.ts", import.meta.url));

export interface Simulated {
  readonly seeds: number;
  readonly runs: number;
  readonly commits: number;
  readonly faults: number;
  readonly failures: number;
}

export async function simulateFor(minutes: number, say: (text: string) => void): Promise<Simulated> {
  say(`simulating for ${minutes.toFixed(1)} minutes\n`);
  const args = ["--conditions=reprise-source", PROGRAM, "--minutes", String(minutes), "--json"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const answer = await text(child.stdout);
  await ended;
  const { seeds, runs, commits, faults, failures } = JSON.parse(answer) as Omit<Simulated, "failures"> & {
    readonly failures: readonly unknown[];
  };
  return { seeds, runs, commits, faults, failures: failures.length };
}
