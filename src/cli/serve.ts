// reprise serve: the API, the dashboard and, in the folder of a federated site, answers for other sites, at one address until it is stopped.
//
// serve.S1. Without --code the store must exist, and nothing is created or migrated; runs of unknown code can be read and controlled.
//   With --code the command is a client of that code, and with --worker an engine that also executes it.
// serve.S2. A folder without federation has no site: neither a key nor a log is created.
// serve.S3. On an address that other machines reach, the API needs tokens and --expose. A federated site without --expose answers only
//   other sites there.

import { existsSync } from "node:fs";
import { RepriseError } from "../base/index.ts";
import { createClient, createEngine, type Client } from "../engine/index.ts";
import type { ServeOptions, Site } from "../federation/index.ts";
import { isLoopback } from "../http/index.ts";
import { createServer, LogRing, type Server, type ServerOptions } from "../server/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { secretFileOf, tokenFileOf } from "./home.ts";
import { loadDefinitions, loadEngineOptions, loadServerOptions } from "./load-definitions.ts";
import { logLines } from "./log-lines.ts";
import { hasStore, isFederated, withFederation } from "./open-federation.ts";
import { openExisting } from "./open-store.ts";
import { paint, print, printJson } from "./output.ts";
import { payloadOptions } from "./payload-module.ts";
import { onInterrupt } from "./signals.ts";
import { refuseMemoryStore } from "./worker.ts";

export interface ServeCommandOptions extends GlobalOptions {
  readonly port: number;
  readonly host: string;
  readonly expose?: boolean;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly insecure?: boolean;
  /** The address that people use, if a proxy is in front of the server. */
  readonly origin?: string;
  /** Module with the definitions that can be started, and the tasks that this site offers or executes. */
  readonly code?: string;
  /** Also execute runs. */
  readonly worker?: boolean;
  readonly dashboard: boolean;
  /** The file of tokens. */
  readonly tokens?: string;
  readonly sync: boolean;
}

export async function serve(options: ServeCommandOptions): Promise<number> {
  if (options.worker === true && options.code === undefined)
    throw new RepriseError("USAGE", "serve: --worker executes code, so it needs --code <file>. Pass both.");
  const tls = tlsOf(options);
  const isPeersOnly = isFederated(options) && !isLoopback(options.host) && options.expose !== true;
  const hasRuns = options.code !== undefined || hasStore(options);
  if (isPeersOnly || !hasRuns) return servePeers(options, tls, isPeersOnly && hasRuns);
  checkExposure(options);
  refuseMemoryStore(options.store);
  const logs = new LogRing();
  const client = await openClient(options, logs);
  try {
    // serve.S2
    if (!isFederated(options)) return await serveAll(client, undefined, options, tls, logs);
    return await withFederation(options, await federationUse(options), (site) =>
      serveAll(client, site, options, tls, logs),
    );
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** serve.S1 */
async function openClient(options: ServeCommandOptions, logs: LogRing): Promise<Client> {
  const { store, code } = options;
  if (code === undefined) {
    const opened = await openExisting(store, false);
    return createClient({
      store: { "~open": () => Promise.resolve(opened) },
      definitions: [],
      logger: false,
      ...payloadOptions(),
    });
  }
  const shared = { store, definitions: await loadDefinitions(code), ...payloadOptions() };
  if (options.worker !== true) {
    const { webhooks } = await loadServerOptions(code);
    return createClient({ ...shared, logger: false, ...(webhooks && { webhooks }) });
  }
  return createEngine({ ...shared, logger: logs.logger(logLines(options.json)), ...(await loadEngineOptions(code)) });
}

async function federationUse({ sync, code }: ServeCommandOptions): Promise<Parameters<typeof withFederation>[1]> {
  const definitions = code === undefined ? [] : await loadDefinitions(code);
  return { store: "optional", sync: sync ? "continuous" : "manual", definitions };
}

async function serveAll(
  client: Client,
  site: Site | undefined,
  options: ServeCommandOptions,
  tls: ServeOptions["tls"],
  logs: LogRing,
): Promise<number> {
  const { port, host, expose = false, insecure = false, origin, dashboard } = options;
  const peers = await site?.openRoutes();
  const { hooks, extensions } = options.code === undefined ? {} : await loadServerOptions(options.code);
  const server = createServer(client, {
    auth: { tokenFile: tokenFileOf(options), local: "session" },
    ...serverSecret(options),
    ...(hooks && { hooks }),
    ...(extensions && { extensions }),
    dashboard,
    logger: logs.logger(logLines(options.json)),
    logs,
    ...(origin !== undefined && { origin }),
    ...(site && { federation: site }),
    ...(peers && { routes: peers.routes, peerOf: (request) => peers.peerOf(request) }),
  });
  const listener = await server.listen({ port, host, expose, insecure, ...(tls && { tls }) });
  await announce(listener.url, server, site, options);
  return untilStopped(async () => {
    await listener.close();
    await peers?.close();
    await site?.close();
    await client.close();
  });
}

/** What links and callback URLs are signed with. Several servers, and code that makes callback URLs, share it. */
function serverSecret(options: ServeCommandOptions): Pick<ServerOptions, "secret" | "secretFile"> {
  const secret = process.env["REPRISE_SECRET"] ?? "";
  return secret === "" ? { secretFile: secretFileOf(options) } : { secret };
}

async function announce(
  url: string,
  server: Server,
  site: Site | undefined,
  options: ServeCommandOptions,
): Promise<void> {
  if (options.json) return printJson({ url, origin: site?.origin ?? null, vkey: site?.vkey ?? null });
  await print(`${paint("green", "serving")} ${url}`);
  if (site?.vkey !== undefined) await print(`${paint("dim", "vkey")}    ${site.vkey}`);
  // A service manager keeps the output in a log, and the address signs its reader in.
  if (process.stdout.isTTY) await print(`${paint("dim", "sign in")} ${server.signInAddress()}`);
  else await print(`${paint("dim", "sign in")} with a token: ${tokenCommand(options)}`);
}

/** Makes a token in the file that this server reads. */
function tokenCommand({ tokens }: ServeCommandOptions): string {
  return `reprise token create <name> --role <role>${tokens === undefined ? "" : ` --file ${tokens}`}`;
}

/** Answers other sites only: a site without runs, such as an auditor, or one whose API is for this machine. */
function servePeers(options: ServeCommandOptions, tls: ServeOptions["tls"], hasHiddenApi: boolean): Promise<number> {
  return federationUse(options).then((use) =>
    withFederation(options, use, async (site) => {
      const { port, host, insecure = false } = options;
      const server = await site.serve({ port, host, insecure, ...(tls && { tls }) });
      if (options.json) await printJson({ url: server.url, origin: site.origin ?? null, vkey: site.vkey ?? null });
      else {
        await print(`${paint("green", "serving")} ${server.url}`);
        if (site.vkey !== undefined) await print(`${paint("dim", "vkey")}    ${site.vkey}`);
        if (hasHiddenApi) await print(`${paint("dim", "API")}     not served to other machines; --expose does`);
      }
      return untilStopped(async () => {
        await server.close();
        await site.close();
      });
    }),
  );
}

function untilStopped(cleanUp: () => Promise<void>): Promise<number> {
  return new Promise<number>(() => onInterrupt({ isService: true, announce: () => {}, cleanUp }));
}

/** serve.S3 */
function checkExposure(options: ServeCommandOptions): void {
  const { host } = options;
  if (isLoopback(host) || existsSync(tokenFileOf(options))) return;
  throw new RepriseError(
    "USAGE",
    `serve: other machines reach ${host}, and there are no tokens. Create one first: \`${tokenCommand(options)}\`.`,
  );
}

function tlsOf({ tlsCert, tlsKey }: ServeCommandOptions): ServeOptions["tls"] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined)
    throw new RepriseError("USAGE", "serve: --tls-cert and --tls-key belong together. Pass both, or neither.");
  return { cert: tlsCert, key: tlsKey };
}
