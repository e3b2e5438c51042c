// Check settings: refuses settings that are not what they seem, before anything is opened.
//
// check-settings.S1. Nothing is on by default: no peer is admitted, nothing is published, no result of another site is reused.
// check-settings.S2. A member that this version does not know is refused: ignored, a misspelled rule would publish nothing, or too much.
// check-settings.S3. A peer that a rule or a label names must be one of `peers`; `"*"` in a rule is every peer.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError } from "../base/index.ts";
import { parseVkey } from "../receipts/index.ts";
import { carrierScheme } from "../carriers/index.ts";
import type {
  ExecuteSettings,
  FederationSettings,
  MemoTrust,
  PeerSettings,
  PublishRule,
  WorkTargets,
} from "./settings.ts";

export const SETTING_NAMES = ["archive", "execute", "name", "peers", "publish", "shards", "work"] as const;
const PEER_NAMES = ["grants", "memo", "pull", "push", "token", "url", "vkey"];
const RULE_NAMES = ["definitions", "origins", "payloads", "tags", "to"];
const PAYLOADS: readonly unknown[] = ["full", "hash-only", "none"];

const PEER = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
const TOKEN = /^[\u0021-\u007e]{16,512}$/;
const MAX_SHARDS = 256;
const DEFAULT_SAMPLE = 0.05;
/** In `push`: the log of this site, in every epoch. */
export const OWN_LOG = "self";

/** A peer with its defaults filled in. */
export interface Peer {
  readonly name: string;
  readonly origin: string;
  readonly url: string | undefined;
  readonly vkey: string;
  readonly token: string | undefined;
  readonly pull: readonly string[];
  /** Globs of origins; empty: nothing is sent. `"self"` is the log of this site. */
  readonly push: readonly string[];
  readonly grants: readonly string[];
  readonly memo: Required<MemoTrust>;
}

/** Settings with their defaults filled in. */
export interface CheckedSettings {
  readonly name: string | undefined;
  readonly shards: number | undefined;
  readonly peers: readonly Peer[];
  readonly publish: readonly Required<PublishRule>[];
  readonly work: ReadonlyMap<string, Required<WorkTargets>>;
  readonly execute: ExecuteSettings | undefined;
  readonly archive: string | undefined;
}

/** `where` begins every message: `createFederation`, or the path of the file. */
export function checkSettings(settings: FederationSettings, where: string): CheckedSettings {
  const { name, shards, archive } = settings;
  if (name !== undefined) expectText(name, `${where}: name`);
  if (shards !== undefined && !(Number.isSafeInteger(shards) && shards >= 1 && shards <= MAX_SHARDS))
    throw bad(`${where}: shards`, `a whole number from 1 to ${MAX_SHARDS}`, shards);
  if (archive !== undefined) checkCarrierUrl(archive, `${where}: archive`);
  const peers = checkPeers(settings.peers ?? {}, where);
  const names = new Set(peers.map((peer) => peer.name));
  return {
    name,
    shards,
    peers,
    publish: expectArray(settings.publish ?? [], `${where}: publish`).map((rule, index) =>
      checkRule(rule as PublishRule, `${where}: publish[${index}]`, names),
    ),
    work: checkWork(settings.work ?? {}, where, names),
    execute: settings.execute && checkExecute(settings.execute, `${where}: execute`, peers),
    archive,
  };
}

function checkPeers(peers: object, where: string): readonly Peer[] {
  expectObject(peers, `${where}: peers`);
  const checked = Object.entries(peers).map(([name, peer]) =>
    checkPeer(name, peer as PeerSettings, `${where}: peers.${name}`),
  );
  const owners = new Map<string, string>();
  for (const { name, origin } of checked) {
    const other = owners.get(origin);
    if (other !== undefined)
      throw new RepriseError(
        "BAD_OPTIONS",
        `${where}: peers.${other} and peers.${name} have the same origin, ${origin}. Keep one of them.`,
      );
    owners.set(origin, name);
  }
  return checked;
}

function checkPeer(name: string, peer: PeerSettings, what: string): Peer {
  if (!PEER.test(name))
    throw bad(what, "a name of 1 to 64 letters, digits, dots, hyphens and underscores, such as hub", name);
  expectObject(peer, what);
  checkOptionNames(peer, PEER_NAMES, what);
  const { url, vkey, token, pull, push = false, grants = [], memo } = peer;
  if (url !== undefined) checkCarrierUrl(url, `${what}.url`);
  expectText(vkey, `${what}.vkey`);
  if (token !== undefined && !(typeof token === "string" && TOKEN.test(token)))
    // Without the value: it is a secret.
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}.token: expected 16 to 512 printable characters without spaces. \`openssl rand -hex 32\` makes one.`,
    );
  const { origin } = parseVkeyOf(vkey, `${what}.vkey`);
  return {
    name,
    origin,
    url,
    vkey,
    token,
    pull: expectTexts(pull ?? [origin], `${what}.pull`),
    push: typeof push === "boolean" ? (push ? [OWN_LOG] : []) : expectTexts(push, `${what}.push`),
    grants: expectTexts(grants, `${what}.grants`).map((grant) => checkGrant(grant, `${what}.grants`)),
    memo: checkMemo(memo, `${what}.memo`),
  };
}

function checkGrant(grant: string, what: string): string {
  if (grant === "erase") return grant;
  throw bad(what, '"erase"', grant);
}

function checkMemo(memo: MemoTrust | undefined, what: string): Required<MemoTrust> {
  if (memo === undefined) return { trust: false, sample: DEFAULT_SAMPLE };
  expectObject(memo, what);
  checkOptionNames(memo, ["sample", "trust"], what);
  const { trust, sample = DEFAULT_SAMPLE } = memo;
  if (typeof trust !== "boolean") throw bad(`${what}.trust`, "true or false", trust);
  if (!(typeof sample === "number" && sample >= 0 && sample <= 1))
    throw bad(`${what}.sample`, "a number from 0 to 1", sample);
  return { trust, sample };
}

function checkRule(rule: PublishRule, what: string, peers: ReadonlySet<string>): Required<PublishRule> {
  expectObject(rule, what);
  checkOptionNames(rule, RULE_NAMES, what);
  const { to, definitions = ["*"], tags = [], origins = [], payloads } = rule;
  if (!PAYLOADS.includes(payloads)) throw bad(`${what}.payloads`, '"full", "hash-only" or "none"', payloads);
  return {
    to: expectTexts(to, `${what}.to`).map((name) => (name === "*" ? name : checkPeerName(name, `${what}.to`, peers))),
    definitions: expectTexts(definitions, `${what}.definitions`),
    tags: expectTexts(tags, `${what}.tags`),
    origins: expectTexts(origins, `${what}.origins`),
    payloads,
  };
}

function checkWork(
  work: object,
  where: string,
  peers: ReadonlySet<string>,
): ReadonlyMap<string, Required<WorkTargets>> {
  expectObject(work, `${where}: work`);
  return new Map(
    Object.entries(work).map(([label, given]) => [label, checkTargets(given, `${where}: work.${label}`, peers)]),
  );
}

function checkTargets(given: unknown, what: string, peers: ReadonlySet<string>): Required<WorkTargets> {
  if (typeof given === "string") return { peers: [checkPeerName(given, what, peers)], redundancy: 1 };
  if (typeof given !== "object" || given === null) throw bad(what, "the name of a peer", given);
  checkOptionNames(given, ["peers", "redundancy"], what);
  const { peers: names, redundancy = 1 } = given as WorkTargets;
  if (redundancy !== 1 && redundancy !== 2) throw bad(`${what}.redundancy`, "1 or 2", redundancy);
  const checked = expectTexts(names, `${what}.peers`).map((name) => checkPeerName(name, `${what}.peers`, peers));
  if (checked.length < redundancy) throw bad(`${what}.peers`, `at least ${redundancy} names of peers`, names);
  return { peers: checked, redundancy };
}

function checkExecute(given: ExecuteSettings, what: string, peers: readonly Peer[]): ExecuteSettings {
  expectObject(given, what);
  checkOptionNames(given, ["concurrency", "for", "labels"], what);
  const { for: names, labels, concurrency } = given;
  for (const name of expectTexts(names, `${what}.for`)) {
    checkPeerName(name, `${what}.for`, new Set(peers.map((peer) => peer.name)));
    if (!/^https?:/.test(peers.find((peer) => peer.name === name)?.url ?? ""))
      throw new RepriseError(
        "BAD_OPTIONS",
        `${what}.for: the peer ${name} has no https:// URL, and work is asked for over HTTP. Set peers.${name}.url to where it serves.`,
      );
  }
  if (labels !== undefined) expectTexts(labels, `${what}.labels`);
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && concurrency >= 1))
    throw bad(`${what}.concurrency`, "a whole number of 1 or more", concurrency);
  return given;
}

/** check-settings.S3 */
function checkPeerName(name: string, what: string, peers: ReadonlySet<string>): string {
  if (peers.has(name)) return name;
  const known = peers.size === 0 ? "there are no peers" : `the peers are ${[...peers].join(", ")}`;
  throw new RepriseError("BAD_OPTIONS", `${what}: there is no peer ${JSON.stringify(name)}; ${known}.`);
}

/** A folder, or the address of a carrier. */
export function checkCarrierUrl(url: unknown, what: string): void {
  expectText(url, what);
  try {
    carrierScheme(url as string);
  } catch (cause) {
    throw new RepriseError("BAD_CARRIER_URL", `${what}: ${(cause as Error).message}`, { cause });
  }
}

function parseVkeyOf(vkey: string, what: string): ReturnType<typeof parseVkey> {
  try {
    return parseVkey(vkey);
  } catch (cause) {
    throw new RepriseError("BAD_OPTIONS", `${what}: ${(cause as Error).message}`, { cause });
  }
}

function expectObject(value: unknown, what: string): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw bad(what, "an object", value);
}

function expectArray(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw bad(what, "an array", value);
}

function expectText(value: unknown, what: string): void {
  if (typeof value === "string" && value !== "") return;
  throw bad(what, "a string", value);
}

function expectTexts(value: unknown, what: string): readonly string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "")) return value as string[];
  throw bad(what, "an array of strings", value);
}

function bad(what: string, expected: string, got: unknown): RepriseError {
  return new RepriseError("BAD_OPTIONS", `${what}: expected ${expected}, got ${inspect(got, { depth: 0 })}.`);
}
