// Set-up: runs `npm ci` if node_modules does not match package-lock.json. It must run on old versions of Node.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const OLDEST_NODE = [24, 15];
const lockPath = join(root, "package-lock.json");
const stampPath = join(root, "node_modules/.lock-hash");

export function setUp() {
  const lock = readFileSync(lockPath, "utf8");
  const hash = createHash("sha256").update(lock).digest("hex");
  if (readIfThere(stampPath) === hash && findNode() !== undefined) return;
  if (!isInstalled(JSON.parse(lock)) || findNode() === undefined) install();
  // Written last: an interrupted installation must be repeated.
  writeFileSync(stampPath, hash);
}

/** For a node_modules that was installed by hand: whether every required package has the locked version. */
function isInstalled(lock) {
  const text = readIfThere(join(root, "node_modules/.package-lock.json"));
  if (text === undefined) return false;
  const installed = JSON.parse(text).packages;
  return Object.entries(lock.packages).every(
    ([path, wanted]) => path === "" || wanted.optional || installed[path]?.version === wanted.version,
  );
}

function install() {
  console.error("Installing the dependencies (npm ci), once …");
  const npm = process.env.npm_execpath;
  const ciArgs = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const options = { cwd: root, stdio: ["ignore", "ignore", "inherit"] };
  const result = npm?.endsWith("js")
    ? spawnSync(process.execPath, [npm, ...ciArgs], options)
    : spawnSync("npm", ciArgs, { ...options, shell: process.platform === "win32" });
  if (result.status === 0) return;
  console.error(
    `npm ci failed${result.error ? `: ${result.error.message}` : ""}. Repair what it says above and try again.`,
  );
  process.exit(result.status || 1);
}

/** The Node that runs everything: the pinned one, or the current one if it is new enough. */
export function pinnedNode() {
  const node = findNode();
  if (node !== undefined) return node;
  console.error(
    `Reprise needs Node ${OLDEST_NODE.join(".")} or newer. The one pinned in package.json is not installed ` +
      `(were install scripts switched off?), and this is ${process.versions.node}. Run npm ci, or use a newer Node.`,
  );
  process.exit(1);
}

function findNode() {
  const pinned = join(root, "node_modules/node/bin", process.platform === "win32" ? "node.exe" : "node");
  if (existsSync(pinned)) return pinned;
  const [major, minor] = process.versions.node.split(".").map(Number);
  const isNewEnough = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  return isNewEnough ? process.execPath : undefined;
}

/** The script of a dependency's command, run by path so that it works without a shell on every platform. */
export function binOf(packageName, command = packageName) {
  const folder = join(root, "node_modules", packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return join(folder, typeof bin === "string" ? bin : bin[command]);
}

function readIfThere(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
