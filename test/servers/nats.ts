// NATS: a real nats-server with JetStream, on a free loopback port, with its files in its own folder.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { onPath } from "../../scripts/servers.mjs";
import { freePort, SupervisedProcess } from "./supervised-process.ts";
import { fastFolder } from "./server.ts";

export interface NatsServer extends AsyncDisposable {
  readonly version: string;
  readonly port: number;
  /** `nats://127.0.0.1:<port>` */
  readonly url: string;
  /** SIGKILL; its files stay. */
  kill(): Promise<void>;
  /** Starts it again on its files. */
  start(): Promise<void>;
  log(): string;
}

export interface NatsOptions {
  /** Further lines of its configuration. */
  readonly config?: readonly string[];
  readonly port?: number;
  /** Without JetStream it keeps no files. */
  readonly withoutJetStream?: boolean;
}

/** Why this machine cannot run it. */
export function whyNoNats(): string | undefined {
  if (process.env["REPRISE_SERVERS"] === "none") return "NATS is left out by REPRISE_SERVERS=none";
  const isThere = onPath("nats-server") !== undefined;
  return isThere ? undefined : "nats-server is not installed; npm test installs it when run by root on Debian";
}

/** Starts a private server. It ends with `await using`, or with this process. */
export async function startNats({
  config = [],
  port,
  withoutJetStream = false,
}: NatsOptions = {}): Promise<NatsServer> {
  const obstacle = whyNoNats();
  if (obstacle !== undefined) throw new Error(obstacle);
  const program = onPath("nats-server")!;
  const kept = new SupervisedProcess({
    name: "NATS",
    accounts: ["nats", "nobody"],
    stopSignal: "SIGTERM",
    endSignal: "SIGKILL",
    under: fastFolder(),
  });
  const listening = port ?? (await freePort());
  const path = join(kept.folder, "nats.conf");
  const store = withoutJetStream ? [] : [`jetstream { store_dir: ${JSON.stringify(join(kept.folder, "data"))} }`];
  const hasDomain = config.some((line) => line.startsWith("jetstream"));
  const lines = [`listen: "127.0.0.1:${listening}"`, ...(hasDomain ? [] : store), ...config];
  writeFileSync(path, `${lines.join("\n").replaceAll("$FOLDER", kept.folder)}\n`, { mode: 0o644 });
  const start = async (): Promise<void> => {
    await kept.launch({ command: program, args: ["-c", path] });
    await kept.untilReady(() => greet(listening));
  };
  try {
    await start();
  } catch (error) {
    await kept[Symbol.asyncDispose]();
    throw error;
  }
  return {
    version: execFileSync(program, ["--version"], { encoding: "utf8" }).trim().replace(/^.*v/, ""),
    port: listening,
    url: `nats://127.0.0.1:${listening}`,
    kill: () => kept.kill(),
    start,
    log: () => kept.log(),
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  };
}

/** It greets when it is ready. */
async function greet(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  try {
    const [said] = (await once(socket, "data")) as [Buffer];
    if (!said.toString("latin1").startsWith("INFO "))
      throw new Error(`it said ${said.toString("latin1").slice(0, 100)}`);
  } finally {
    socket.destroy();
  }
}
