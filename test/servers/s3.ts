// S3: a real server that speaks its protocol, versitygw, built from source with a Go toolchain, once, below .reprise. Only `npm run
// faults` uses it; the tests use the stand-in of test/federation/carriers/s3-server.ts.

import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { buildVersitygw, findVersitygw, onPath, VERSITYGW } from "../../scripts/servers.mjs";
import { fastFolder } from "./server.ts";
import { freePort, SupervisedProcess } from "./supervised-process.ts";

export interface RealS3 extends AsyncDisposable {
  /** Name and version, for the report. */
  readonly name: string;
  /** The URL of an empty prefix. */
  urlOf(prefix: string): string;
  /** The keys, as the environment of a carrier. */
  readonly env: Readonly<Record<string, string>>;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const BUCKET = "history";
const KEYS = { AWS_ACCESS_KEY_ID: "tester", AWS_SECRET_ACCESS_KEY: "tester-secret" };

/** Why this machine cannot run it. */
export function whyNoS3(): string | undefined {
  if (process.env["REPRISE_SERVERS"] === "none") return "S3 is left out by REPRISE_SERVERS=none";
  return findVersitygw() === undefined && onPath("go") === undefined
    ? "versitygw is built from source, and Go is not installed"
    : undefined;
}

export async function startS3(): Promise<RealS3> {
  buildVersitygw();
  const kept = new SupervisedProcess({
    name: "versitygw",
    accounts: ["nobody"],
    stopSignal: "SIGTERM",
    endSignal: "SIGKILL",
    under: fastFolder(),
    env: { ROOT_ACCESS_KEY: KEYS.AWS_ACCESS_KEY_ID, ROOT_SECRET_KEY: KEYS.AWS_SECRET_ACCESS_KEY, HOME: "/nonexistent" },
  });
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const start = async (): Promise<void> => {
    // Versions are extended attributes of the files. In files of their own (--sidecar) a reader could get the version of one file with
    // the bytes of another one.
    const args = ["--port", `127.0.0.1:${port}`, "--quiet", "posix", join(kept.folder, "data")];
    await kept.launch({ command: findVersitygw()!, args });
    await kept.untilReady(() => fetch(endpoint));
  };
  try {
    const account = kept.account;
    for (const folder of ["data", `data/${BUCKET}`]) {
      mkdirSync(join(kept.folder, folder), { mode: 0o777 });
      if (account !== undefined) chownSync(join(kept.folder, folder), account.uid, account.gid);
    }
    await start();
  } catch (error) {
    await kept[Symbol.asyncDispose]();
    throw error;
  }
  return {
    name: `versitygw ${VERSITYGW}`,
    urlOf: (prefix) => `s3://${BUCKET}/${prefix}?endpoint=${encodeURIComponent(endpoint)}&region=us-east-1`,
    env: KEYS,
    kill: () => kept.kill(),
    start,
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  };
}
