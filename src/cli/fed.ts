// reprise fed and head: the log of the store, the home and its conflicts.

import { join } from "node:path";
import type { ConflictInfo, FederationStatus } from "../federation/index.ts";
import { RepriseError, toBytes, type Size } from "../base/index.ts";
import { suggest } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withFederation } from "./open-federation.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { Table } from "./table.ts";
import { plain, pluralize, showValue, sizeText } from "./text.ts";

export type FedOptions = GlobalOptions;

export interface ResolveOptions extends FedOptions {
  /** How it was decided. */
  readonly as: string;
}

const OPTIONAL = { store: "optional" } as const;

export function switchFederation(to: "on" | "off", options: FedOptions): Promise<number> {
  return withFederation(options, {}, async (site) => {
    await site.setOn(to === "on");
    const { waiting } = await site.status();
    if (options.json) await printJson({ isOn: to === "on", origin: site.origin ?? null, waiting });
    else if (to === "on") {
      await print(`${paint("green", "on")}  runs that end are recorded in the log of ${plain(site.origin ?? "")}`);
      remark(`  ${paint("dim", "next:")} reprise push <peer>, or reprise serve`);
    } else await print(`${paint("green", "off")}  no more runs are recorded; the log stays`);
    return EXIT.ok;
  });
}

export function head(options: GlobalOptions): Promise<number> {
  return withFederation(options, { store: "optional" }, async (site) => {
    const note = await suggest({ USAGE: "reprise fed on" }, site.head());
    if (options.json) {
      const [origin, size, root] = note.split("\n");
      await printJson({ origin, size: Number(size), root, note });
    } else await print(note.trimEnd());
    return EXIT.ok;
  });
}

/** The key of REPRISE_KEY cannot be replaced: it is nowhere to write to. */
export function rotateKey(options: GlobalOptions): Promise<number> {
  return withFederation(options, { store: "optional" }, async (site) => {
    const { vkey } = await site.rotateKey();
    if (options.json) await printJson({ origin: site.origin, vkey, from: join(site.home, "key") });
    else {
      await print(`${paint("green", "rotated")}  ${plain(site.origin ?? "")} signs with a new key`);
      await print(`${paint("dim", "vkey")}     ${vkey}`);
      remark(`  ${paint("dim", "next:")} reprise push, and keep a copy of ${plain(join(site.home, "key"))}`);
    }
    return EXIT.ok;
  });
}

export function status(options: FedOptions): Promise<number> {
  return withFederation(options, OPTIONAL, async (site) => {
    const now = await site.status();
    if (options.json) await printJson(now);
    else await printStatus(now);
    return now.conflicts > 0 ? EXIT.problem : EXIT.ok;
  });
}

async function printStatus(now: FederationStatus): Promise<void> {
  const { origin, vkey, isOn, waiting, origins, peers, conflicts: count, missing, snapshot } = now;
  const line = (name: string, value: string): Promise<void> => print(`${paint("dim", name.padEnd(10))}${value}`);
  if (origin !== undefined) await line("origin", plain(origin));
  if (vkey !== undefined) await line("vkey", plain(vkey));
  if (isOn !== undefined) await line("recording", isOn ? "on" : "off; `reprise fed on` starts it");
  if (waiting > 0) await line("waiting", `${pluralize(waiting, "run has", "runs have")} no record yet`);
  await line("snapshot", snapshot);
  if (missing > 0)
    await line(
      "missing",
      `${pluralize(missing, "content", "contents")} of the logs, not published to this site or not pulled`,
    );
  if (count > 0) await line("conflicts", paint("red", `${count}; \`reprise fed conflicts\` shows the evidence`));
  if (origins.length > 0) {
    await print("");
    const table = new Table([
      { title: "LOG", minWidth: 20, clipsMiddle: true },
      { title: "OF" },
      { title: "RECORDS", right: true },
      { title: "STATUS" },
    ]);
    for (const text of table.render(origins.map((one) => [one.origin, one.peer ?? "", String(one.size), one.status])))
      await print(text);
  }
  if (peers.length > 0) {
    await print("");
    const table = new Table([
      { title: "PEER" },
      { title: "PULLED" },
      { title: "PUSHED" },
      { title: "PROBLEM", minWidth: 16 },
    ]);
    const rows = peers.map((peer) => [
      peer.name,
      peer.pulledAt?.toISOString() ?? "never",
      peer.pushedAt?.toISOString() ?? "never",
      peer.error?.message ?? "",
    ]);
    for (const text of table.render(rows)) await print(text);
  }
}

export function conflicts(options: FedOptions & { readonly all?: boolean }): Promise<number> {
  return withFederation(options, OPTIONAL, async (site) => {
    const list = await site.conflicts({ all: options.all ?? false });
    for (const conflict of list) await (options.json ? printJson(conflict) : printConflict(conflict));
    if (list.length === 0 && !options.json) await print("No conflicts.");
    return list.some(({ state }) => state === "open") ? EXIT.problem : EXIT.ok;
  });
}

async function printConflict({ id, kind, subject, peer, firstSeen, state, evidence }: ConflictInfo): Promise<void> {
  const from = peer === undefined ? "" : `, from ${plain(peer)}`;
  await print(
    `${paint("bold", String(id))}  ${paint(state === "open" ? "red" : "dim", kind)}  ${plain(subject)}${from}`,
  );
  await print(`   ${paint("dim", `${firstSeen.toISOString()}, ${state}`)}`);
  await print(`   ${showValue(evidence, 200)}`);
}

export function resolve(conflict: string, options: ResolveOptions): Promise<number> {
  const id = Number(conflict);
  if (!Number.isSafeInteger(id))
    throw new RepriseError("USAGE", `fed resolve: expected the number of a conflict, got ${plain(conflict)}.`);
  return withFederation(options, OPTIONAL, async (site) => {
    const resolved = await suggest({ USAGE: "reprise fed conflicts --all" }, site.resolve(id, options.as));
    if (options.json) await printJson(resolved);
    else await print(`${paint("green", "resolved")} ${id}: ${plain(resolved.subject)}`);
    return EXIT.ok;
  });
}

export function rebuild(options: FedOptions): Promise<number> {
  return withFederation(options, OPTIONAL, async (site) => {
    const { stateHash } = await site.rebuild();
    if (options.json) await printJson({ stateHash });
    else await print(`${paint("green", "rebuilt")}  state ${stateHash}`);
    return EXIT.ok;
  });
}

export function gc(options: FedOptions & { readonly maxBytes?: string }): Promise<number> {
  const maxBytes = options.maxBytes === undefined ? undefined : toBytes(options.maxBytes as Size, "--max-bytes");
  return withFederation(options, OPTIONAL, async (site) => {
    const { contents, bytes } = await site.gc(maxBytes === undefined ? {} : { maxBytes });
    if (options.json) await printJson({ contents, bytes });
    else await print(`${paint("green", "deleted")} ${pluralize(contents, "content", "contents")}, ${sizeText(bytes)}`);
    return EXIT.ok;
  });
}
