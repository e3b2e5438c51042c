// NATS connection: server, bucket and credentials of a URL, and the packages that speak to them.

import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { Kvm } from "@nats-io/kv";
import type { Objm } from "@nats-io/obj";
import type { ConnectionOptions, MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { RepriseError } from "../base/index.ts";
import { natsError } from "./nats-errors.ts";

export interface NatsLink {
  /** Without credentials, for messages. */
  readonly url: string;
  readonly bucket: string;
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  /** New headers of a message. */
  headers(): MsgHdrs;
  readonly kv: Kvm;
  readonly obj: Objm;
}

const EXAMPLE =
  'Write "nats://host:4222/bucket", with TLS "nats+tls://host:4222/bucket", for a JetStream domain also "?domain=hub".';

/** `token`: a token, `user:password`, or the text of a credentials file. */
export async function connectNats(url: string, token: string | undefined, timeoutMs: number): Promise<NatsLink> {
  const { protocol, hostname, port, pathname, searchParams, username, hash } = new URL(url);
  const host = `${hostname}:${port === "" ? 4222 : port}`;
  const bucket = pathname.replace(/^\//, "");
  const shown = `${protocol}//${host}/${bucket}`;
  const bad = (problem: string): RepriseError =>
    new RepriseError(
      "BAD_CARRIER_URL",
      `${JSON.stringify(shown)}: ${problem}. ${EXAMPLE} An S3 bucket is "s3://bucket/prefix".`,
      {
        details: { url: shown },
      },
    );
  if (hostname === "" || !/^[\w-]{1,200}$/.test(bucket))
    throw bad("a bucket has letters, digits, hyphens and underscores");
  if (username !== "")
    throw bad("credentials are passed with the option `token` (a token, `user:password`, or a credentials file)");
  const domain = searchParams.get("domain") ?? undefined;
  const unknown = [...searchParams.keys()].find((name) => name !== "domain");
  if (unknown !== undefined || hash !== "") throw bad(`there is no parameter ${JSON.stringify(unknown ?? hash)}`);
  const { connect, credsAuthenticator, headers, jetstreamManager, jetstream, Kvm, Objm } = await loadPackages();
  const options: ConnectionOptions = {
    servers: host,
    timeout: timeoutMs,
    // A carrier outlives restarts of its server.
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    ...(protocol === "nats+tls:" ? { tls: {} } : {}),
    ...credentials(token, credsAuthenticator),
  };
  let connection: NatsConnection | undefined;
  try {
    connection = await connect(options);
    const manager = await jetstreamManager(connection, {
      timeout: timeoutMs,
      ...(domain === undefined ? {} : { domain }),
    });
    const client = jetstream(connection, { timeout: timeoutMs, ...(domain === undefined ? {} : { domain }) });
    return { url: shown, bucket, connection, manager, client, headers, kv: new Kvm(client), obj: new Objm(client) };
  } catch (error) {
    await connection?.close();
    throw natsError(shown, "connect", error);
  }
}

function credentials(
  token: string | undefined,
  credsAuthenticator: (creds: Uint8Array) => NonNullable<ConnectionOptions["authenticator"]>,
): ConnectionOptions {
  if (token === undefined) return {};
  if (token.includes("BEGIN NATS USER JWT")) return { authenticator: credsAuthenticator(Buffer.from(token)) };
  const colon = token.indexOf(":");
  return colon === -1 ? { token } : { user: token.slice(0, colon), pass: token.slice(colon + 1) };
}

async function loadPackages() {
  try {
    const [{ connect, credsAuthenticator, headers }, { jetstream, jetstreamManager }, { Kvm }, { Objm }] =
      await Promise.all([
        import("@nats-io/transport-node"),
        import("@nats-io/jetstream"),
        import("@nats-io/kv"),
        import("@nats-io/obj"),
      ]);
    return { connect, credsAuthenticator, headers, jetstream, jetstreamManager, Kvm, Objm };
  } catch (error) {
    throw new RepriseError(
      "DRIVER_MISSING",
      "A carrier in NATS needs packages that are not installed. Run `npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv @nats-io/obj`.",
      { cause: error },
    );
  }
}
