// Home: the folder of this project's signing key, trusted keys and mirrors.

import { resolve } from "node:path";

export interface HomeOptions {
  /** From --home or REPRISE_HOME; by default `.reprise`. */
  readonly home?: string;
}

export const DEFAULT_HOME = ".reprise";

export function homeOf({ home }: HomeOptions): string {
  return resolve(home ?? (process.env["REPRISE_HOME"] || DEFAULT_HOME));
}
