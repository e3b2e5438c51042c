// The settings of the command line: `<home>/federation.json`, with the members of FederationSettings.
//
// settings-file.F1. The file is private (0600): it holds the tokens of peers. A file that other users can read is refused.
// settings-file.F2. A change replaces the whole file at once, so that a process never reads half of it. Members that a person wrote
//   stay as they are.

import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkOptionNames, RepriseError, systemRandom } from "../base/index.ts";
import { checkSettings, SETTING_NAMES } from "./check-settings.ts";
import type { FederationSettings, PeerSettings } from "./settings.ts";

export function settingsFile(home: string): string {
  return join(home, "federation.json");
}

/** The checked text of the file; without a file, no settings at all. */
export function readSettings(home: string): FederationSettings {
  const file = settingsFile(home);
  if (!existsSync(file)) return {};
  // Windows has no such modes.
  if (process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${file} is not private: other users of this machine can read the tokens in it. Run \`chmod 600 ${file}\`.`,
    );
  const settings = parse(file);
  if (typeof settings !== "object" || settings === null || Array.isArray(settings))
    throw new RepriseError("BAD_OPTIONS", `${file}: expected an object, such as {"peers":{}}.`);
  checkOptionNames(settings, SETTING_NAMES, file);
  checkSettings(settings, file);
  return settings;
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as unknown;
  } catch (cause) {
    throw new RepriseError("BAD_OPTIONS", `${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}

/** Adds or replaces a peer; the settings are checked before anything is written. */
export function writePeer(home: string, name: string, peer: PeerSettings): void {
  const settings = readSettings(home);
  write(home, { ...settings, peers: { ...settings.peers, [name]: peer } });
}

/** False: there is no such peer. A peer that a rule or a label names is refused. */
export function removePeer(home: string, name: string): boolean {
  const settings = readSettings(home);
  const { [name]: removed, ...peers } = settings.peers ?? {};
  if (removed === undefined) return false;
  write(home, { ...settings, peers });
  return true;
}

/** settings-file.F2 */
function write(home: string, settings: FederationSettings): void {
  const file = settingsFile(home);
  checkSettings(settings, file);
  const temporary = `${file}.${systemRandom.token()}`;
  writeFileSync(temporary, `${JSON.stringify(settings, undefined, 2)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(temporary, file);
}
