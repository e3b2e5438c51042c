// reprise push: sends records and published contents to peers or to a carrier.

import { readSettings, settingsFile, type SyncReport } from "../federation/index.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { startProgress, withFederation } from "./open-federation.ts";
import { paint, paintError, print, printJson, remark, reportOf } from "./output.ts";
import { unknownPeer } from "./peer.ts";
import { plain, pluralize } from "./text.ts";

export type PushOptions = GlobalOptions;

export async function push(peer: string | undefined, options: PushOptions): Promise<number> {
  const peers = readSettings(homeOf(options)).peers ?? {};
  if (peer !== undefined && !isAddress(peer) && !Object.hasOwn(peers, peer)) throw unknownPeer(peer, options);
  return withFederation(options, { store: "optional" }, async (site) => {
    const progress = startProgress("pushing", "records");
    const reports = await site
      .push(peer, { onProgress: (...step) => progress.at(...step) })
      .finally(() => progress.end());
    if (reports.length === 0 && !options.json)
      remark("No peer has `push`. Set it: `reprise peer add <name> <url> --key <vkey> --push`.");
    const code = await reportSync(reports, "pushed", options);
    if (!options.json) warnUnpublished(reports, options);
    return code;
  });
}

/** Nothing is published by default. The first push of a new site says so. */
function warnUnpublished(reports: readonly SyncReport[], options: PushOptions): void {
  const home = homeOf(options);
  const { peers = {}, publish = [] } = readSettings(home);
  for (const { peer, error } of reports) {
    const reader = Object.hasOwn(peers, peer) ? peer : "*";
    if (error !== undefined || publish.some(({ to }) => to.includes("*") || to.includes(reader))) continue;
    remark(`${plain(peer)} gets the log and no contents: no rule in \`publish\` is for it. Add one to`);
    remark(`${plain(settingsFile(home))}:`);
    remark(`  "publish": [{ "to": [${JSON.stringify(reader)}], "payloads": "hash-only" }]`);
  }
}

/** A URL or a path, and not the name of a peer. */
export function isAddress(text: string): boolean {
  return text.includes(":") || text.includes("/") || text === ".";
}

/** One line for each peer. A peer that failed makes the exit code 1; the others are done. */
export async function reportSync(
  reports: readonly SyncReport[],
  verb: "pulled" | "pushed",
  { json }: GlobalOptions,
): Promise<number> {
  for (const report of reports) {
    const { peer, error, contents } = report;
    const records = report[verb];
    if (json) {
      const problem = error === undefined ? {} : { error: { code: reportOf(error).code, message: error.message } };
      await printJson({ peer, [verb]: records, contents, ...problem });
    } else if (error === undefined) {
      const what = `${pluralize(records, "record", "records")}, ${pluralize(contents, "content", "contents")}`;
      await print(`${paint("green", verb)} ${plain(peer)}: ${records + contents === 0 ? "nothing new" : what}`);
    } else {
      const { code, message, next } = reportOf(error);
      remark(`${paintError("red", `${plain(peer)}: ${code}:`)} ${plain(message)}`);
      remark(`  ${paintError("dim", "next:")} ${plain(next)}`);
    }
  }
  return reports.some(({ error }) => error !== undefined) ? EXIT.problem : EXIT.ok;
}
