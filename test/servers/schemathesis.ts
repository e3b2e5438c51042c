// Schemathesis: a tester of HTTP APIs by their OpenAPI document, from PyPI, installed once below .reprise. Only `npm run faults` uses it;
// the tests have a generator of their own (test/server/random-requests.test.ts).

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const SCHEMATHESIS = "4.32.5";

const FOLDER = fileURLToPath(new URL(`../../.reprise/schemathesis-${SCHEMATHESIS}`, import.meta.url));
const PROGRAM = join(FOLDER, "bin", "schemathesis");

/** Why this machine cannot run it. */
export function whyNoSchemathesis(): string | undefined {
  if (existsSync(PROGRAM)) return undefined;
  return spawnSync("python3", ["-c", "import venv, ensurepip"]).status === 0
    ? undefined
    : "schemathesis needs Python 3 with venv";
}

function install(): void {
  if (existsSync(PROGRAM)) return;
  const stdio = ["ignore", "ignore", "inherit"] as const;
  execFileSync("python3", ["-m", "venv", "--clear", FOLDER], { stdio: [...stdio] });
  execFileSync(join(FOLDER, "bin", "pip"), ["install", "--quiet", `schemathesis==${SCHEMATHESIS}`], {
    stdio: [...stdio],
  });
}

export interface Tested {
  readonly status: number | null;
  /** What it printed: the failures with a request that reproduces each. */
  readonly text: string;
}

/** Runs it to its end. Its data stay in `folder`. */
export async function runSchemathesis(args: readonly string[], folder: string): Promise<Tested> {
  install();
  const child = spawn(PROGRAM, ["run", ...args], {
    cwd: folder,
    env: { ...process.env, HOME: folder, NO_PROXY: "127.0.0.1", NO_COLOR: "1", COLUMNS: "160" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { status, text };
}
