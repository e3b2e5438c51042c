// Hosts: the servers that one URL names, and which of them serves.
//
// H1. A new connection tries every host, the last one that served first. A host that cannot be reached, or only reads, is
//     skipped; if none serves, the failure names each host with its own reason.
// H2. What an operator has to correct (a password, a certificate) is thrown at once, by whichever host.
// H3. A standby is refused when a store is opened with one host. Later, and with several hosts, it is a server that may be
//     promoted any moment: the connection counts as lost and is retried as long as patience lasts (patience.ts).

import { RepriseError } from "../../base/index.ts";
import { ConnectionError } from "./backend.ts";

/** H3. The server only reads. */
export class StandbyError extends RepriseError {
  constructor(location: string, why: string) {
    super("STORE_LOCATION", `${location} is a standby, which only reads${why}. Name the primary server.`);
  }

  static at(location: string): StandbyError {
    return new StandbyError(location, "");
  }
}

/** One URL per host: `postgres://a:1,b:2/shop` becomes `postgres://a:1/shop` and `postgres://b:2/shop`. */
export function splitHosts(url: string): readonly string[] {
  const { before, hosts, after } = AUTHORITY.exec(url)?.groups ?? {};
  if (before === undefined || hosts === undefined || after === undefined) return [url];
  return hosts.split(",").map((host) => `${before}${host}${after}`);
}

/** What stands behind the last @ names hosts; a comma before it belongs to a password. */
const AUTHORITY = /^(?<before>[a-z]+:\/\/(?:[^/?#]*@)?)(?<hosts>[^/?#@]*)(?<after>.*)$/s;

/** The other way round. */
export function joinHosts(urls: readonly URL[]): string {
  const { before, after } = AUTHORITY.exec(urls[0]!.href)!.groups!;
  return `${before}${urls.map(({ host }) => host).join()}${after}`;
}

/** The URL with all its hosts, changed in one respect. */
export function withEachHost(url: string, change: (url: URL) => void): string {
  const urls = splitHosts(url).map((each) => new URL(each));
  for (const each of urls) change(each);
  return joinHosts(urls);
}

export class Hosts<H> {
  readonly all: readonly H[];
  readonly #shown: (host: H) => string;
  /** Where the last connection was made. */
  #served = 0;

  constructor(all: readonly H[], shown: (host: H) => string) {
    this.all = all;
    this.#shown = shown;
  }

  get areSeveral(): boolean {
    return this.all.length > 1;
  }

  /** H1, H2. `isPassing` says of an error that another host, or a later attempt, may do better. */
  async connect<C>(attempt: (host: H) => Promise<C>, isPassing: (error: unknown) => boolean): Promise<C> {
    const failures: string[] = [];
    const from = this.#served;
    for (let tried = 0; tried < this.all.length; tried += 1) {
      const at = (from + tried) % this.all.length;
      const host = this.all[at] as H;
      try {
        const connection = await attempt(host);
        this.#served = at;
        return connection;
      } catch (error) {
        if (!this.areSeveral || !(error instanceof StandbyError || isPassing(error))) throw error;
        failures.push(`${this.#shown(host)}: ${reasonOf(error)}`);
      }
    }
    throw new ConnectionError("lost", { cause: new Error(failures.join("; ")) });
  }

  /**
   * What is thrown for a connection that came to nothing after all, by a store that was open before or not (H3). The next
   * one begins with another host: this one may be a primary that was left behind.
   */
  judge(error: unknown, wasOpen: boolean): unknown {
    this.#served = (this.#served + 1) % this.all.length;
    const isPassing = error instanceof StandbyError && (wasOpen || this.areSeveral);
    return isPassing ? new ConnectionError("lost", { cause: error }) : error;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof StandbyError) return "is a standby";
  // Of a name with several addresses, each has its own.
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}
