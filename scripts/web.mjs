// Web: whether dist/web is the build of the files in web/. It must run on old versions of Node.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { binOf, root } from "./set-up.mjs";

const stampPath = join(root, ".reprise/web-hash");

/** What the dashboard takes from src besides types. */
const SHARED = ["src/contract/approval-answer.ts", "src/contract/check-json.ts"];

/** The hash of everything that the build reads. */
function hashOfWeb() {
  const hash = createHash("sha256");
  const paths = readdirSync(join(root, "web"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of [...paths.sort(), ...SHARED.map((one) => join(root, one)), join(root, "package-lock.json")]) {
    hash
      .update(`${path.slice(root.length)}\0`)
      .update(readFileSync(path))
      .update("\0");
  }
  return hash.digest("hex");
}

export function isWebBuilt() {
  if (!existsSync(stampPath) || !existsSync(join(root, "dist/web/index.html"))) return false;
  return readFileSync(stampPath, "utf8") === hashOfWeb();
}

export function markWebBuilt() {
  mkdirSync(dirname(stampPath), { recursive: true });
  writeFileSync(stampPath, hashOfWeb());
}

/** For the set-up of tests: builds the dashboard if its files changed. */
export function provideWeb() {
  if (isWebBuilt()) return;
  const build = [binOf("vite"), "build", "--config", "web/vite.config.ts"];
  // vitest sets NODE_ENV to "test"; the bundle must be that of users.
  const env = { ...process.env, NODE_ENV: "production" };
  const result = spawnSync(process.execPath, build, { cwd: root, stdio: ["ignore", "ignore", "inherit"], env });
  if (result.status !== 0) throw new Error(`The build of web/ failed with code ${result.status}.`);
  markWebBuilt();
}
