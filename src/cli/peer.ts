// reprise peer: the sites in federation.json. Nothing is sent; the next push, pull or serve uses the change.

import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { RepriseError, systemRandom } from "../base/index.ts";
import {
  createHomeFolder,
  readSettings,
  removePeer as removeFrom,
  settingsFile,
  writePeer,
  type PeerSettings,
} from "../federation/index.ts";
import { CommandError } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { Table } from "./table.ts";
import { plain } from "./text.ts";

export interface PeerAddOptions extends GlobalOptions {
  readonly key: string;
  /** `-`: from standard input, so that it is in no list of processes. */
  readonly token?: string;
  readonly newToken?: boolean;
  readonly push?: boolean;
  readonly pull?: readonly string[];
  readonly grant?: readonly string[];
  readonly trustMemo?: boolean;
}

const TOKEN_BYTES = 32;

export async function addPeer(name: string, url: string | undefined, options: PeerAddOptions): Promise<number> {
  const home = homeOf(options);
  const vkey = options.key.trim();
  const known = readSettings(home).peers?.[name];
  // What is known of a peer stays unless it is given; of another key, nothing does.
  const before = known?.vkey === vkey ? known : undefined;
  const token = await tokenOf(options);
  const peer: PeerSettings = {
    ...before,
    ...(url !== undefined && { url: isFolder(url) ? resolve(url) : url }),
    vkey,
    ...(token !== undefined && { token }),
    ...(options.pull !== undefined && { pull: options.pull }),
    ...(options.push === true && { push: true }),
    ...(options.grant !== undefined && { grants: options.grant }),
    ...(options.trustMemo === true && { memo: { trust: true } }),
  };
  createHomeFolder(home);
  writePeer(home, name, peer);
  const [origin = ""] = peer.vkey.split("+");
  if (options.json)
    await printJson({
      name,
      origin,
      url: peer.url ?? null,
      file: settingsFile(home),
      ...(options.newToken && { token }),
    });
  else {
    await print(`${paint("green", known === undefined ? "added" : "changed")} ${plain(name)}, ${origin}`);
    remark(`  ${paint("dim", "file:")} ${plain(settingsFile(home))}`);
    if (options.newToken === true) await print(`${paint("dim", "token")}  ${token}`);
    remark(`  ${paint("dim", "next:")} ${nextOf(name, peer)}`);
  }
  return EXIT.ok;
}

/** A path, which commands in other folders must find as well. */
function isFolder(url: string): boolean {
  return !/^[a-z][a-z\d+.-]*:/i.test(url);
}

function nextOf(name: string, { url, push }: PeerSettings): string {
  if (url === undefined) return "reprise serve";
  return push === true ? `reprise push ${name}` : `reprise pull ${name}`;
}

async function tokenOf({ token, newToken }: PeerAddOptions): Promise<string | undefined> {
  if (token !== undefined && newToken === true)
    throw new RepriseError("USAGE", "peer add: --token has a token and --new-token makes one. Pass one of them.");
  if (newToken === true) return Buffer.from(systemRandom.bytes(TOKEN_BYTES)).toString("hex");
  return token === "-" ? (await text(process.stdin)).trim() : token;
}

export async function removePeer(name: string, options: GlobalOptions): Promise<number> {
  const home = homeOf(options);
  if (!removeFrom(home, name)) throw unknownPeer(name, options);
  if (options.json) await printJson({ name, removed: true });
  else await print(`${paint("green", "removed")} ${plain(name)}; its records that are here stay`);
  return EXIT.ok;
}

/** An error that names the peers there are. */
export function unknownPeer(name: string, options: GlobalOptions): CommandError {
  const names = Object.keys(readSettings(homeOf(options)).peers ?? {});
  const known = names.length === 0 ? "This site has no peers." : `The peers are ${names.join(", ")}.`;
  return new CommandError(
    "USAGE",
    `There is no peer ${plain(name)} in ${settingsFile(homeOf(options))}. ${known}`,
    names.length === 0 ? "reprise peer add <name> <url> --key <vkey>" : "reprise peer list",
  );
}

export async function listPeers(options: GlobalOptions): Promise<number> {
  const peers = Object.entries(readSettings(homeOf(options)).peers ?? {});
  if (options.json) {
    // Without the tokens: a list is shown and logged.
    for (const [name, { token, ...peer }] of peers)
      await printJson({ name, origin: peer.vkey.split("+")[0], ...peer, hasToken: token !== undefined });
    return EXIT.ok;
  }
  if (peers.length === 0) {
    await print("No peers. `reprise peer add <name> <url> --key <vkey>` admits another site.");
    return EXIT.ok;
  }
  const table = new Table([
    { title: "PEER" },
    { title: "ORIGIN", minWidth: 16, clipsMiddle: true },
    { title: "DIRECTION" },
    { title: "TOKEN", dropOrder: 1 },
    { title: "URL", minWidth: 12, clipsMiddle: true },
  ]);
  const rows = peers.map(([name, { vkey, token, url, push, pull }]) => [
    name,
    vkey.split("+")[0]!,
    [url === undefined ? "connects here" : "pull", push === true ? "push" : "", pull?.includes("*") ? "all" : ""]
      .filter((word) => word !== "")
      .join(", "),
    token === undefined ? "no" : "yes",
    url ?? "",
  ]);
  for (const line of table.render(rows)) await print(line);
  return EXIT.ok;
}
