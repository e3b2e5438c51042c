// Hosts: the servers in one URL, and the choice of the one that accepts writes.
//
// hosts.H1. A new connection tries every host, starting with the one that served last. A host that cannot be reached or is
//   read-only is skipped; if no host serves, the error lists each host with its reason.
// hosts.H2. An error that an operator must fix (a password, a certificate) is thrown at once, whichever host it comes from.
// hosts.H3. A standby is refused when a store is opened with one host. Later, and with several hosts, it may be promoted at any
//   moment: the connection counts as lost and is retried (retry.ts).

import { RepriseError } from "../../base/index.ts";
import { ConnectionError } from "./backend.ts";

/** hosts.H3. The server is read-only. */
export class StandbyError extends RepriseError {
  constructor(location: string, what: string) {
    super(
      "STORE_LOCATION",
      `${location} is ${what}, and Reprise must write. Use the address of the primary in the store URL.`,
    );
  }

  static at(location: string): StandbyError {
    return new StandbyError(location, "a standby, which is read-only");
  }
}

/** One URL per host: `postgres://a:1,b:2/shop` becomes `postgres://a:1/shop` and `postgres://b:2/shop`. */
export function splitHosts(url: string): readonly string[] {
  const { before, hosts, after } = AUTHORITY.exec(url)?.groups ?? {};
  if (before === undefined || hosts === undefined || after === undefined) return [url];
  return hosts.split(",").map((host) => `${before}${host}${after}`);
}

/** Hosts follow the last @; a comma before it belongs to the password. */
const AUTHORITY = /^(?<before>[a-z]+:\/\/(?:[^/?#]*@)?)(?<hosts>[^/?#@]*)(?<after>.*)$/s;

/** One URL with all hosts, from one URL per host. */
export function joinHosts(urls: readonly URL[]): string {
  const { before, after } = AUTHORITY.exec(urls[0]!.href)!.groups!;
  return `${before}${urls.map(({ host }) => host).join()}${after}`;
}

/** Applies a change to a URL with several hosts. */
export function withEachHost(url: string, change: (url: URL) => void): string {
  const urls = splitHosts(url).map((each) => new URL(each));
  for (const each of urls) change(each);
  return joinHosts(urls);
}

export class Hosts<H> {
  readonly all: readonly H[];
  readonly #shown: (host: H) => string;
  /** The index of the host of the last connection. */
  #lastUsed = 0;

  constructor(all: readonly H[], shown: (host: H) => string) {
    this.all = all;
    this.#shown = shown;
  }

  get areSeveral(): boolean {
    return this.all.length > 1;
  }

  /** hosts.H1, hosts.H2. `isTransient`: whether another host, or a later attempt, may succeed. */
  async connect<C>(attempt: (host: H) => Promise<C>, isTransient: (error: unknown) => boolean): Promise<C> {
    const failures: string[] = [];
    const from = this.#lastUsed;
    for (let tried = 0; tried < this.all.length; tried += 1) {
      const at = (from + tried) % this.all.length;
      const host = this.all[at] as H;
      try {
        const connection = await attempt(host);
        this.#lastUsed = at;
        return connection;
      } catch (error) {
        if (!this.areSeveral || !(error instanceof StandbyError || isTransient(error))) throw error;
        failures.push(`${this.#shown(host)}: ${reasonOf(error)}`);
      }
    }
    throw new ConnectionError("lost", { cause: new Error(failures.join("; ")) });
  }

  /**
   * The error to throw for a connection that failed after it was opened; `wasOpen`: by a store that was open before (hosts.H3).
   * The next connection starts with another host: this one may be an old primary.
   */
  errorFor(error: unknown, wasOpen: boolean): unknown {
    this.#lastUsed = (this.#lastUsed + 1) % this.all.length;
    const isTransient = error instanceof StandbyError && (wasOpen || this.areSeveral);
    return isTransient ? new ConnectionError("lost", { cause: error }) : error;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof StandbyError) return "is a standby (read-only)";
  // A host name with several addresses gives one error per address.
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}
