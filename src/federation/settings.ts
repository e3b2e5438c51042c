// Settings: what a site knows about its peers and what it publishes, from the options of createFederation or from
// `<home>/federation.json`. Both have the same members; check-settings.ts checks them.

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
  /** True: send the log of this site to the peer. A list: the logs of these origins; `*` stands for any characters. Default: false. */
  push?: boolean | readonly string[];
  /** What the peer may do here: `"erase"` contents of other origins. `work` names the peers that may execute tasks. */
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

/** Work that this site does for others. */
export interface ExecuteSettings<Peer extends string = string> {
  /** The peers whose tasks this site executes. */
  for: readonly Peer[];
  /** Only tasks with one of these labels. Default: every task of `definitions` that has a label. */
  labels?: readonly string[];
  /** How many tasks run at once. Default: 256. */
  concurrency?: number;
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
  /** Tasks of peers that this site executes. */
  execute?: ExecuteSettings<NoInfer<Peer>>;
  /** A carrier that keeps the history of this site, such as `s3://bucket/prefix`. */
  archive?: string;
}
