// Home: the folder of this project's signing key, trusted keys and mirrors.

import { join, resolve } from "node:path";

export interface HomeOptions {
  /** From --home or REPRISE_HOME; by default `.reprise`. */
  readonly home?: string;
}

export const DEFAULT_HOME = ".reprise";

export function homeOf({ home }: HomeOptions): string {
  return resolve(home ?? (process.env["REPRISE_HOME"] || DEFAULT_HOME));
}

/** The tokens of the HTTP API: `reprise token` writes the file, and servers read it. */
export function tokenFileOf(options: HomeOptions & { readonly tokens?: string }): string {
  return options.tokens === undefined ? join(homeOf(options), "tokens.json") : resolve(options.tokens);
}

/** Signs sessions and approval links of servers of this folder. */
export function secretFileOf(options: HomeOptions): string {
  return join(homeOf(options), "server-secret");
}
