// reprise bundle: writes runs to one file that can be verified, imported and replayed elsewhere.
//
// bundle.B1. From a store with a codec nothing leaves in plain text unless the operator asks for it with --full: the form is blind, and a
//   plain digest, which could be guessed, is refused.
// bundle.B2. The file exists as a whole or not at all (new-file.N1). The memory that a bundle needs does not depend on its size.

import { createHash } from "node:crypto";
import { artifactKey, RepriseError, systemClock } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import {
  memberOf,
  readFamily,
  readGenerations,
  readRun,
  STATEMENT_TYPE,
  writeBundle,
  type ArtifactLine,
  type BundleForm,
  type BundleSource,
  type Envelope,
  type FamilyMember,
} from "../receipts/index.ts";
import { encrypterFor } from "./age.ts";
import { bundlePage } from "./bundle-page.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import type { HomeOptions } from "./home.ts";
import { getKey, type OwnKey } from "./keys.ts";
import { openLogProofs } from "./log-proofs.ts";
import { NewFile } from "./new-file.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { paint, paintError, print, remark } from "./output.ts";
import { payloadCodec } from "./payload-module.ts";
import { createProgress } from "./progress.ts";
import { onInterrupt } from "./signals.ts";
import { jsonText, plain, pluralize, sizeText } from "./text.ts";
import { packageVersion } from "./version.ts";

export interface BundleCommandOptions extends GlobalOptions, HomeOptions {
  /** The file; `-`: standard output. */
  readonly output: string;
  /** The option that named the file, for messages. Default: --output. */
  readonly outputOption?: string;
  readonly family?: boolean;
  readonly hashOnly?: boolean;
  readonly blind?: boolean;
  readonly full?: boolean;
  readonly unsigned?: boolean;
  readonly html?: boolean;
  /** Recipients of age. */
  readonly to?: readonly string[];
  readonly generation?: number;
}

interface BundledSection {
  readonly id: string;
  readonly generation: number;
  readonly status: string;
  readonly entries: number;
  readonly claim: string;
}

export async function bundle(ids: readonly string[], options: BundleCommandOptions): Promise<number> {
  checkOptions(ids, options);
  const encrypt = options.to === undefined ? undefined : await encrypterFor(options.to);
  const file = options.output === "-" ? undefined : new NewFile(options.output, options.outputOption ?? "--output");
  const discard = (): void => file?.discard();
  onInterrupt({ announce: () => remark("stopped; no file was written"), cleanUp: async () => discard() });
  process.once("exit", discard);
  try {
    return await withStoreToRead(options.store, async (store) => {
      const form = await chooseForm(store, options);
      const members = await selectMembers(store, ids, options);
      const own = options.unsigned === true ? undefined : getKey(options);
      if (own?.isNew === true)
        remark(`created the signing key ${own.key.origin} in ${plain(own.from)}; keep a copy of it`);
      const sections: BundledSection[] = [];
      using proofs = own === undefined ? undefined : await openLogProofs(options);
      const lines = linesOf(store, members, form, own, sections, proofs);
      const texts = options.html === true ? bundlePage(lines, own?.key.vkey) : lines;
      const bytes = encrypt === undefined ? chunksOf(texts) : await encrypt(chunksOf(texts));
      const written = await writeAll(bytes, file);
      await report({ form, own, sections, ...written, file: file?.path }, options);
      return EXIT.ok;
    });
  } finally {
    discard();
    process.off("exit", discard);
  }
}

function checkOptions(
  ids: readonly string[],
  { hashOnly, blind, full, generation, family }: BundleCommandOptions,
): void {
  if ([hashOnly, blind, full].filter((one) => one === true).length > 1)
    throw new RepriseError("USAGE", "--full, --hash-only and --blind exclude each other. Pass one of them.");
  if (generation !== undefined && (ids.length > 1 || family === true))
    throw new RepriseError("USAGE", "--generation selects one generation of one run. Name one run, without --family.");
}

/** bundle.B1 */
async function chooseForm(store: Store, options: BundleCommandOptions): Promise<BundleForm> {
  const { codecs } = await store.info();
  if (codecs.length > 0 && payloadCodec() === undefined)
    throw new RepriseError(
      "PAYLOAD_KEY_MISSING",
      `The payloads of this store were written with the codec ${codecs.join(", ")}, and a bundle is made of what they contain. Pass its module with --codec.`,
    );
  if (options.blind === true) return "blind";
  if (options.full === true) return "full";
  if (codecs.length === 0) return options.hashOnly === true ? "hash-only" : "full";
  if (options.hashOnly === true)
    throw new RepriseError(
      "BAD_OPTIONS",
      "--hash-only: this store encrypts its payloads, and plain digests of short values can be guessed. Use --blind, or --full for the payloads themselves.",
    );
  return "blind";
}

/** Every generation of the named runs, in their order; with --family, all runs of their families. */
async function selectMembers(
  store: Store,
  ids: readonly string[],
  { generation, family }: BundleCommandOptions,
): Promise<readonly FamilyMember[]> {
  const named = [...new Set(ids)];
  for (const id of named) await getRun(store, id, generation);
  if (family === true) return readFamily(store, named);
  if (generation !== undefined) return [memberOf(await getRun(store, named[0]!, generation))];
  const members: FamilyMember[] = [];
  for (const id of named) members.push(...(await readGenerations(store, id)).map(memberOf));
  return members;
}

async function* linesOf(
  store: Store,
  members: readonly FamilyMember[],
  form: BundleForm,
  own: OwnKey | undefined,
  sections: BundledSection[],
  proofs: Awaited<ReturnType<typeof openLogProofs>>,
): AsyncGenerator<string> {
  const total = members.reduce((sum, { head }) => sum + head, 0);
  const progress = createProgress("bundling", "entries", () => systemClock.monotonic());
  let done = 0;
  try {
    for (const { id, generation } of members) {
      const source: BundleSource = await readRun(store, await getRun(store, id, generation));
      let number = 0;
      const keys: string[] = [];
      for await (const line of writeBundle(source, { form, key: own?.key, engine: `reprise/${packageVersion()}` })) {
        number += 1;
        if (number === CLAIM_LINE) {
          const { status } = source.run;
          const claim = (JSON.parse(line) as ArtifactLine).k;
          sections.push({ id, generation, status, entries: source.head, claim });
        }
        if (number === ENVELOPE_LINE) keys.push(statementKey(line));
        if (number === HEAD_LINES) keys.unshift((JSON.parse(line) as ArtifactLine).k);
        if (number > HEAD_LINES) progress.at(Math.min((done += 1), total), total);
        yield `${line}\n`;
      }
      for (const line of proofs?.linesOf(keys) ?? []) yield `${line}\n`;
    }
  } finally {
    progress.end();
  }
}

/** bundle-lines.L1 */
const ENVELOPE_LINE = 2;
const CLAIM_LINE = 3;
const HEAD_LINES = 4;
const CHUNK = 128 * 1024;

/** The key of the statement in an envelope, as a log names it. */
function statementKey(line: string): string {
  const { payload } = JSON.parse(line) as Envelope;
  return artifactKey(STATEMENT_TYPE, Buffer.from(payload, "base64").toString("utf8"));
}

async function* chunksOf(texts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let pending: string[] = [];
  let length = 0;
  for await (const text of texts) {
    pending.push(text);
    length += text.length;
    if (length < CHUNK) continue;
    yield Buffer.from(pending.join(""));
    pending = [];
    length = 0;
  }
  if (length > 0) yield Buffer.from(pending.join(""));
}

interface Written {
  readonly bytes: number;
  readonly digest: string;
}

async function writeAll(chunks: AsyncIterable<Uint8Array>, file: NewFile | undefined): Promise<Written> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    bytes += chunk.length;
    if (file !== undefined) await file.write(chunk);
    else if (!process.stdout.write(chunk)) await new Promise<void>((resolve) => process.stdout.once("drain", resolve));
  }
  await file?.commit();
  return { bytes, digest: `sha256:${hash.digest("hex")}` };
}

interface BundleSummary extends Written {
  readonly file: string | undefined;
  readonly form: BundleForm;
  readonly own: OwnKey | undefined;
  readonly sections: readonly BundledSection[];
}

const CONTENTS: Readonly<Record<BundleForm, string>> = {
  full: "contains the payloads as recorded: inputs, results and the secrets in them",
  "hash-only": "contains no payloads, but digests of them; those of short values can be guessed (--blind prevents it)",
  blind: "contains no payloads, and no digest that could be guessed; ids, names, tags, times and sizes are readable",
};

/** To standard error if the bundle itself goes to standard output. */
async function report(
  { file, form, own, sections, bytes, digest }: BundleSummary,
  options: BundleCommandOptions,
): Promise<void> {
  const say = file === undefined ? async (text: string): Promise<void> => remark(text) : print;
  const entries = sections.reduce((sum, one) => sum + one.entries, 0);
  if (options.json)
    return say(
      jsonText({
        file: file ?? null,
        form,
        payloads: form === "full",
        signedBy: own?.key.origin ?? null,
        encryptedFor: options.to ?? [],
        page: options.html === true,
        entries,
        bytes,
        digest,
        runs: sections,
      }),
    );
  const painted = file === undefined ? paintError : paint;
  const where = file === undefined ? "standard output" : plain(options.output);
  const runs = pluralize(new Set(sections.map(({ id }) => id)).size, "run", "runs");
  await say(
    `${painted("green", "bundled")}  ${runs}, ${pluralize(entries, "entry", "entries")} in ${where} (${sizeText(bytes)})`,
  );
  await say(painted("dim", `content  ${CONTENTS[form]}`));
  await say(painted("dim", own === undefined ? "signer   none (--unsigned)" : `signer   ${own.key.origin}`));
  if (options.to !== undefined) await say(painted("dim", `readable only by ${options.to.join(", ")}`));
}
