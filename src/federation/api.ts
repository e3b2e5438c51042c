// What createFederation returns: one site, its logs and its peers.

import type { Duration, PayloadCodec, RepriseError } from "../base/index.ts";
import type { ForeignMemos } from "../engine/index.ts";
import type { AnyTask, Definition, Logger, LogLevel } from "../kernel/index.ts";
import type { StoreSource } from "../stores/index.ts";
import type { FederationSettings } from "./settings.ts";

/** Options of `createFederation`. */
export interface FederationOptions<Peer extends string = string> extends FederationSettings<Peer> {
  /** The store whose runs this site publishes. Absent: a site without runs, such as a relay or an auditor. */
  store?: string | StoreSource;
  /** The tasks that this site offers to peers (`work`) or executes for them (`execute`). */
  definitions?: readonly (Definition | AnyTask)[];
  /** The codec of the store, if its payloads are encrypted. Such a store publishes blind digests only. */
  codec?: PayloadCodec;
  /** The folder of keys, logs and contents. Default: `.reprise`. */
  home?: string;
  /** The signing key, the text of `<home>/key`. Default: `REPRISE_KEY`, or that file, which is created if there is none. */
  key?: string;
  /** `"continuous"`: exchange records with peers, and execute their tasks, until `close()`. `"manual"`: only when `sync`, `push` or `pull` is called. Default: `"continuous"`. */
  sync?: "continuous" | "manual";
  /** Where failures of the exchange are reported, once a minute at most for each peer. Default: standard error. */
  logger?: Logger | LogLevel | false;
  /** Ends the wait of `createFederation`. */
  signal?: AbortSignal;
}

/** A log that this site holds. */
export interface OriginInfo {
  readonly origin: string;
  /** The peer with this origin; `"self"` for the own one; absent if the log came over another peer. */
  readonly peer?: string;
  /** The number of its records here. */
  readonly size: number;
  /** In base64. */
  readonly root: string;
  readonly status: string;
}

/** A peer, and how the exchange with it goes. */
export interface PeerInfo {
  readonly name: string;
  readonly origin: string;
  readonly url?: string;
  readonly pulledAt?: Date;
  readonly pushedAt?: Date;
  /** The last failure, until the next success. */
  readonly error?: { readonly code: string; readonly message: string; readonly at: Date };
}

/** What `status` returns. */
export interface FederationStatus {
  readonly origin: string;
  readonly vkey: string;
  /** Whether the store records the ends of its runs; absent without a store. */
  readonly isOn?: boolean;
  /** Ended runs that are not in the log yet; counting stops at 1,000. */
  readonly waiting: number;
  readonly origins: readonly OriginInfo[];
  readonly peers: readonly PeerInfo[];
  readonly conflicts: number;
  /** Contents that records name and this site may have, but does not have. */
  readonly missing: number;
  /** The id of what this site knows now. */
  readonly snapshot: string;
}

/** What `sync`, `push` and `pull` moved. */
export interface SyncReport {
  readonly peer: string;
  readonly pulled: number;
  readonly pushed: number;
  /** Contents and journals that came, or of a push, that the peer lacked. */
  readonly contents: number;
  /** Why the exchange with this peer failed; the exchange with others continues. */
  readonly error?: RepriseError;
}

/** Options of `push` and `pull`. */
export interface ExchangeOptions {
  /** Ends the exchange; what was taken stays. */
  signal?: AbortSignal;
  /** Called while records move. */
  onProgress?: (done: number, total: number) => void;
}

/** Options of `serve`. */
export interface ServeOptions {
  /** Default: 7420; 0 is any free port. */
  port?: number;
  /** Default: 127.0.0.1. An address that other machines reach needs `tls` or `insecure`. */
  host?: string;
  /** Files of certificate and private key (PEM). */
  tls?: { cert: string; key: string };
  /** Listen without TLS where other machines reach it, such as behind a proxy that has TLS. */
  insecure?: boolean;
}

/** A server that answers other sites. */
export interface SiteServer extends AsyncDisposable {
  /** Such as `http://127.0.0.1:7420`. */
  readonly url: string;
  /** Ends open requests and stops listening. */
  close(): Promise<void>;
}

/** What a site knew at one moment: how far it had each log. */
export interface SnapshotInfo {
  /** Equal for equal heads, on every site. */
  readonly id: string;
  /** Origin → number of records, and their root in base64. */
  readonly heads: Readonly<Record<string, readonly [size: number, root: string]>>;
  /** When it was taken here; absent: it is not kept. */
  readonly at?: Date;
  /** Whether every record that one of its records had seen is in it. */
  readonly isClosed: boolean;
}

/** A cell that differs between two snapshots. */
export interface SnapshotChange {
  /** `a:<key>` of a content, `s:<slot>` of a link. */
  readonly cell: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Two histories or contents that contradict each other. */
export interface ConflictInfo {
  readonly id: number;
  /** `fork`: two histories of one log; `content`: other bytes for a key; `divergence`: two results of a pure step. */
  readonly kind: string;
  /** What it is about: an origin, a key, or a memo. */
  readonly subject: string;
  readonly peer?: string;
  readonly firstSeen: Date;
  /** `open` or `resolved`. */
  readonly state: string;
  /** How it was decided. */
  readonly resolution?: string;
  readonly evidence: unknown;
}

/** Which runs to find: conditions that all hold. */
export interface RunsFilter {
  /** The id of a run. */
  run?: string;
  /** The log that it is in. */
  origin?: string;
  definition?: string;
  /** How it ended: `completed`, `failed`, `cancelled`, `continued`. */
  status?: string;
  tag?: string;
  /** At most this many, in the order of the logs. */
  limit?: number;
}

/** A run of this site or of another, as its published record says. */
export interface FederatedRun {
  readonly origin: string;
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  readonly version: number;
  readonly status: string;
  readonly createdAt: Date;
  readonly endedAt?: Date;
  readonly tags: readonly string[];
}

/** A relation between keys, runs and origins that a site has published. */
export interface TracedRelation {
  /** Distance from the start, from 1. */
  readonly depth: number;
  readonly type: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  /** The site that says so. */
  readonly origin: string;
}

/** What `archive` put on the carrier. */
export interface ArchiveReport {
  readonly carrier: string;
  /** Runs that the carrier has now, and that `reprise prune` may delete here. */
  readonly runs: number;
  /** Records that the carrier lacked. */
  readonly records: number;
}

/** What `erase` did. */
export interface EraseReport {
  /** The cells that are erased, for good. */
  readonly cells: readonly string[];
  /** Runs that were deleted from the store. */
  readonly runs: number;
}

/** What `gc` deleted. */
export interface GcReport {
  readonly contents: number;
  readonly bytes: number;
}

/** One site: its log, what it holds of others, and the exchange with its peers. */
export interface Federation<Peer extends string = string> extends AsyncDisposable {
  /** The name of this site's log: `<name>/<16 hex>`. */
  readonly origin: string;
  /** What other sites need to admit this one: its first key. */
  readonly vkey: string;
  /** The folder of this site. */
  readonly home: string;
  /** Logs, peers, waiting runs and conflicts. */
  status(): Promise<FederationStatus>;
  /** Writes the log of ended runs, then exchanges records with every peer, once. A peer that fails is in the report. */
  sync(options?: ExchangeOptions): Promise<readonly SyncReport[]>;
  /** Sends what a peer, or a carrier at a URL, lacks. Without a name: every peer with `push`. */
  push(peer?: Peer | (string & {}), options?: ExchangeOptions): Promise<readonly SyncReport[]>;
  /** Takes what a peer, or a carrier at a URL, has and this site lacks. Without a name: every peer with a URL. */
  pull(peer?: Peer | (string & {}), options?: ExchangeOptions): Promise<readonly SyncReport[]>;
  /** The runs whose records are here, of all sites. */
  runs(filter?: RunsFilter): Promise<readonly FederatedRun[]>;
  /** The lines of a bundle of a run that is here, with proofs that the log of its site has it; all generations. `from`: a peer or carrier that may have what is missing. */
  bundle(run: string, options?: { origin?: string; from?: Peer | (string & {}) }): Promise<readonly string[]>;
  /** What led to a key or `run:<id>` (`"why"`), or what followed (`"uses"`), over the runs and links of all sites, nearest first. */
  trace(
    direction: "why" | "uses",
    key: string,
    options?: { depth?: number; limit?: number; snapshot?: string },
  ): Promise<{ readonly relations: readonly TracedRelation[]; readonly isCut: boolean }>;
  /** Answers other sites over HTTP. */
  serve(options?: ServeOptions): Promise<SiteServer>;
  /** The signed head of this site's log: three lines and a signature. */
  head(): Promise<string>;
  /** Replaces the signing key. The log names the new one, so peers follow without a change. */
  rotateKey(): Promise<{ readonly vkey: string }>;
  /** Starts or ends the recording of ended runs in the store's log. */
  setOn(on: boolean): Promise<void>;
  /** Snapshots: what this site knows now, and what it knew before. */
  readonly snapshots: {
    /** Takes a snapshot and keeps it. */
    create(): Promise<SnapshotInfo>;
    /** Those that are kept, newest first. */
    list(): Promise<readonly SnapshotInfo[]>;
    /** A snapshot by its id or its first digits. */
    get(id: string): Promise<SnapshotInfo>;
    /** What changed from one to another; without the second, until now. */
    diff(before: string, after?: string): Promise<readonly SnapshotChange[]>;
    /** The digest of the state at a snapshot, or now: equal on every site that has the same records. */
    stateHash(id?: string): Promise<string>;
  };
  /** Results of pure steps that trusted peers have published, for `createEngine({ memos: site.memos })`. */
  readonly memos: ForeignMemos;
  /** Histories and contents that contradict each other; resolved ones too with `all`. */
  conflicts(options?: { all?: boolean }): Promise<readonly ConflictInfo[]>;
  /** Marks a conflict as decided, with the reason. */
  resolve(conflict: number, how: string): Promise<ConflictInfo>;
  /** Puts journals, statements and the log of this site on a carrier; default: the one of the option `archive`. */
  archive(carrier?: string, options?: ExchangeOptions): Promise<ArchiveReport>;
  /** Deletes runs of the store that ended that long ago and that the archive has. */
  pruneArchived(options: { olderThan: Duration; dryRun?: boolean }): Promise<{ readonly runs: number }>;
  /** Deletes the contents of a run of this site, or one content, on every site, for good. */
  erase(what: string, options: { reason: string; all?: boolean }): Promise<EraseReport>;
  /** Drops everything that is derived from logs and contents, and computes it again. */
  rebuild(): Promise<{ readonly stateHash: string }>;
  /** Deletes contents that nothing needs; with `maxBytes` also contents of other sites, oldest first, until the rest fits. */
  gc(options?: { maxBytes?: number }): Promise<GcReport>;
  /** Ends the exchange and closes everything. */
  close(): Promise<void>;
}
