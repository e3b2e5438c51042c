// Home: the folder of this project's signing key, trusted keys and mirrors.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

export interface HomeOptions {
  /** From --home or REPRISE_HOME; by default `.reprise`. */
  readonly home?: string;
}

export const DEFAULT_HOME = ".reprise";

export function homeOf({ home }: HomeOptions): string {
  return resolve(home ?? (process.env["REPRISE_HOME"] || DEFAULT_HOME));
}

/** The folder, private, and with a .gitignore: what is in it must not be published. */
export function createHome(options: HomeOptions): void {
  const home = homeOf(options);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const ignore = join(home, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { mode: 0o600 });
}
