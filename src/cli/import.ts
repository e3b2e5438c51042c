// reprise import: puts the runs of bundles into a mirror.
//
// import.I1. A file is checked as a whole before anything of it is visible: level 0 always, level 1 with the keys that are known. A
//   signature of a known key that does not match is refused; one of an unknown key is reported.
// import.I2. The runs of a file are put in together or not at all. Each file is on its own: one that is refused takes nothing
//   away from those before it.

import { RepriseError } from "../base/index.ts";
import { checkBundle, readBundle, type BundleReport } from "../receipts/index.ts";
import type { CopiedRun, Mirror, PutOutcome } from "../stores/maintenance/index.ts";
import { copyOfBundle } from "./bundle-copy.ts";
import type { GlobalOptions } from "./global-options.ts";
import { admittedKeys } from "./keys.ts";
import { checkMirrorName } from "./mirrors.ts";
import { withLogProof } from "./log-proofs.ts";
import { openBundle, type OpenBundleOptions, type OpenedBundle } from "./open-bundle.ts";
import { paintError, remark } from "./output.ts";
import { report, withMirror } from "./pull.ts";
import { plain } from "./text.ts";

export interface ImportOptions extends GlobalOptions, OpenBundleOptions {
  readonly as?: string;
  readonly key?: readonly string[];
}

export async function importBundles(files: readonly string[], options: ImportOptions): Promise<number> {
  const outcomes = new Map<string, PutOutcome[]>();
  for (const file of files) {
    await using bundle = await openBundle(file, options);
    const origin = await originOf(bundle);
    const name = checkMirrorName(options.as ?? nameOf(origin, file));
    const put = await withMirror(name, options, (mirror) => putBundle(mirror, bundle, origin, options));
    outcomes.set(name, [...(outcomes.get(name) ?? []), ...put]);
  }
  for (const [name, put] of outcomes) await report("imported", name, put, options);
  return 0;
}

/** The origin that the first statement names; empty: it names none. It only decides where to look: the check comes later. */
export async function originOf(bundle: OpenedBundle): Promise<string> {
  for await (const { value } of readBundle(bundle)) {
    if (value.line !== "envelope") continue;
    try {
      const statement = JSON.parse(Buffer.from(value.envelope.payload, "base64").toString()) as StatementText;
      const origin = statement.predicate?.origin;
      return typeof origin === "string" ? origin : "";
    } catch {
      return "";
    }
  }
  return "";
}

interface StatementText {
  readonly predicate?: { readonly origin?: unknown };
}

function nameOf(origin: string, file: string): string {
  const [name = ""] = origin.split("/");
  if (name !== "") return name;
  throw new RepriseError(
    "USAGE",
    `${file} is not signed, so it names no origin. Name the mirror for its runs with --as <name>.`,
  );
}

async function putBundle(
  mirror: Mirror,
  bundle: OpenedBundle,
  origin: string,
  options: ImportOptions,
): Promise<readonly PutOutcome[]> {
  const known = mirror.info.origin;
  if (known !== undefined && origin !== "" && known !== origin)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${bundle.path} is of the origin ${origin}, and the mirror ${mirror.info.name} is of ${known}. Import it under another name: --as <name>.`,
      { details: { origin, mirror: mirror.info.name } },
    );
  const put = await mirror.put(copies(bundle, origin, options));
  if (known === undefined && origin !== "") await mirror.describe({ origin });
  return put;
}

export async function* copies(bundle: OpenedBundle, origin: string, options: ImportOptions): AsyncGenerator<CopiedRun> {
  let noted = false;
  const keys = admittedKeys(options);
  for await (const checked of checkBundle(bundle, keys)) {
    const found = await withLogProof(checked, keys);
    if (found.problem !== undefined) throw damaged(bundle, found.problem);
    if ((found.statement?.origin ?? "") !== origin)
      throw new RepriseError(
        "BAD_OPTIONS",
        `${bundle.path} has runs of several origins: ${origin || "none"} and ${found.statement?.origin ?? "none"}. Split the file, and import each origin under its own name.`,
      );
    const doubt = doubtOf(found, origin);
    if (found.signature.status === "bad_signature")
      throw new RepriseError("BUNDLE_DAMAGED", `${bundle.path}: run ${found.run.id} ${doubt}.`, {
        details: { run: found.run.id },
      });
    if (doubt !== undefined && !noted) remark(paintError("yellow", `${plain(bundle.path)} ${plain(doubt)}`));
    noted = true;
    yield await copyOfBundle(found, bundle.path);
  }
}

/** import.I1. Undefined: an admitted key signed it. */
function doubtOf({ signature }: BundleReport, origin: string): string | undefined {
  switch (signature.status) {
    case "trusted":
      return signature.origin === origin ? undefined : `is signed by ${signature.origin}, not by ${origin}`;
    case "unsigned":
      return "is not signed: its runs may be made up";
    case "unknown_key":
      return `is signed by ${signature.keyid}, which you do not trust yet (reprise key trust <vkey>)`;
    case "bad_signature":
      return `has a signature of ${signature.keyid} that does not match`;
  }
}

function damaged(bundle: OpenedBundle, problem: NonNullable<BundleReport["problem"]>): RepriseError {
  const where = problem.line === undefined ? "" : ` (line ${problem.line})`;
  return new RepriseError(
    "BUNDLE_DAMAGED",
    `${bundle.path} is ${problem.kind}${where}: ${problem.message.replace(/\.$/, "")}. Nothing was imported.`,
    { details: { file: bundle.path, kind: problem.kind, ...(problem.line !== undefined && { line: problem.line }) } },
  );
}
