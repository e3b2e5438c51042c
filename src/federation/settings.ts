// Settings: what a site knows about its peers and what it publishes, from the options of createFederation or from
// `<home>/federation.json`. Both have the same members, and both are checked here.
//
// settings.S1. Nothing is on by default: no peer is admitted, nothing is published, no result of another site is reused.
// settings.S2. A member that this version does not know is refused: ignored, a misspelled rule would publish nothing, or too much.
// settings.S3. A peer that a rule or a label names must be one of `peers`; `"*"` in a rule is every peer.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError } from "../base/index.ts";
import { parseVkey } from "../receipts/index.ts";

/** What a rule of publication gives away of a run: everything, digests alone, or nothing. */
export type PublishedPayloads = "full" | "hash-only" | "none";

/** A rule of publication: which runs of this site which peers may read, and in which form. */
export interface PublishRule<Peer extends string = string> {
  /** Names of peers; `"*"` is every peer. */
  to: readonly (Peer | "*")[];
  /** Names of definitions; `*` stands for any characters, as in `"billing.*"`. Default: all. */
  definitions?: readonly string[];
  /** Only runs with at least one of these tags; `*` stands for any characters. Default: all. */
  tags?: readonly string[];
  /** Origins whose runs this site relays; `*` stands for any characters. Default: the rule is for the runs of this site. */
  origins?: readonly string[];
  /** `"full"`: journals and values; `"hash-only"`: their digests; `"none"`: nothing, which ends the search for a rule. */
  payloads: PublishedPayloads;
}

/** Whether results that a peer computed are reused here. */
export interface MemoTrust {
  /** True: a pure step whose result the peer has published is not executed again. */
  trust: boolean;
  /** The share of known results that are computed anyway and compared, from 0 to 1. Default: 0.05. */
  sample?: number;
}

/** Another site: where it is, how to recognize it, and what it may do. */
export interface PeerSettings {
  /** Where its files are: `https://…` of `reprise serve`, a folder, `s3://…` or `nats://…`. Absent: the peer connects to this site. */
  url?: string;
  /** What `reprise key` prints there. The site accepts no record of the peer without it. */
  vkey: string;
  /** The secret that both sites know. This site sends it with every request, and accepts requests that carry it as the peer's. */
  token?: string;
  /** Origins to take from the peer; `*` stands for any characters, and `"*"` is every admitted origin. Default: the peer's own. */
  pull?: readonly string[];
  /** True: send new records to the peer. Default: false. */
  push?: boolean;
  /** What the peer may do here: `"erase"` contents of other origins, `"work:<label>"` execute tasks with a label. */
  grants?: readonly string[];
  /** Default: results of the peer are not reused. */
  memo?: MemoTrust;
}

/** The peers that execute the tasks of a label. */
export interface WorkTargets<Peer extends string = string> {
  /** Each task goes to one of those that are connected. */
  peers: readonly Peer[];
  /** 2: two peers execute each task, and their results are compared before one is committed. Default: 1. */
  redundancy?: 1 | 2;
}

/** The members that createFederation and `<home>/federation.json` share. */
export interface FederationSettings<Peer extends string = string> {
  /** The name of a new signing key. Default: the name of the folder. */
  name?: string;
  /** Files that the home is divided into, 1 to 256. Fixed when the home is created. Default: 1. */
  shards?: number;
  /** The other sites, by the names that this site gives them. */
  peers?: Readonly<Record<Peer, PeerSettings>>;
  /** The first rule that fits a run and a peer decides. Default: nothing is published. */
  publish?: readonly PublishRule<NoInfer<Peer>>[];
  /** Label of tasks → the peer, or the peers, that execute them. */
  work?: Readonly<Record<string, NoInfer<Peer> | WorkTargets<NoInfer<Peer>>>>;
  /** A carrier that keeps the history of this site, such as `s3://bucket/prefix`. */
  archive?: string;
}

export const SETTING_NAMES = ["archive", "name", "peers", "publish", "shards", "work"] as const;
const PEER_NAMES = ["grants", "memo", "pull", "push", "token", "url", "vkey"];
const RULE_NAMES = ["definitions", "origins", "payloads", "tags", "to"];
const PAYLOADS: readonly unknown[] = ["full", "hash-only", "none"];

const PEER = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
const TOKEN = /^[\u0021-\u007e]{16,512}$/;
const SCHEME = /^(?:https?|s3|nats|file):\/\//;
const MAX_SHARDS = 256;
const DEFAULT_SAMPLE = 0.05;

/** A peer with its defaults filled in. */
export interface Peer {
  readonly name: string;
  readonly origin: string;
  readonly url: string | undefined;
  readonly vkey: string;
  readonly token: string | undefined;
  readonly pull: readonly string[];
  readonly push: boolean;
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
  if (typeof push !== "boolean") throw bad(`${what}.push`, "true or false", push);
  const { origin } = parseVkeyOf(vkey, `${what}.vkey`);
  return {
    name,
    origin,
    url,
    vkey,
    token,
    pull: expectTexts(pull ?? [origin], `${what}.pull`),
    push,
    grants: expectTexts(grants, `${what}.grants`).map((grant) => checkGrant(grant, `${what}.grants`)),
    memo: checkMemo(memo, `${what}.memo`),
  };
}

function checkGrant(grant: string, what: string): string {
  if (grant === "erase" || /^work:./.test(grant)) return grant;
  throw bad(what, '"erase" or "work:<label>"', grant);
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

/** settings.S3 */
function checkPeerName(name: string, what: string, peers: ReadonlySet<string>): string {
  if (peers.has(name)) return name;
  const known = peers.size === 0 ? "there are no peers" : `the peers are ${[...peers].join(", ")}`;
  throw new RepriseError("BAD_OPTIONS", `${what}: there is no peer ${JSON.stringify(name)}; ${known}.`);
}

/** A folder, or the address of a carrier. */
export function checkCarrierUrl(url: unknown, what: string): void {
  expectText(url, what);
  if (SCHEME.test(url as string) || !/^[a-z][a-z0-9+.-]+:/i.test(url as string)) return;
  throw bad(what, "a folder, or a URL that begins with https://, http://, s3://, nats:// or file://", url);
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
