// Verify bundles: the sections of bundle files, each with what its lines, its signature and the other sections say about it.

import { openSync, closeSync, readSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import { RepriseError } from "../base/index.ts";
import {
  bundledEntries,
  bundleFindings,
  bundleHistory,
  checkBundle,
  findFork,
  isBundleText,
  missingFrom,
  namedInSection,
  type BundleReport,
  type Finding,
  type NamedRun,
  type VerifyingKey,
  type VerifyLevel,
} from "../receipts/index.ts";
import { withLogProof } from "./log-proofs.ts";
import { openBundle, type OpenBundleOptions, type OpenedBundle } from "./open-bundle.ts";
import { readFork, type ReadRun } from "./verify-stored-run.ts";

const HEAD_BYTES = 64;

/** Whether an argument names a bundle, and not a run. A damaged bundle is one, too: an id of a run seldom has an extension. */
export function isBundleFile(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
  if (extname(path) !== "") return true;
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return isBundleText(head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0)).toString("latin1"));
  } finally {
    closeSync(file);
  }
}

const BUNDLE_NAME = /\.(?:jsonl|html|age)$/;
const NOT_THERE: ReadonlySet<unknown> = new Set(["RUN_NOT_FOUND", "BAD_STORE_URL"]);

/** The error for a target that is neither a file nor a run: one that has the name of a bundle was meant as a file. */
export function targetError(error: unknown, targets: readonly string[]): unknown {
  const file = targets.find((target) => BUNDLE_NAME.test(target));
  if (file === undefined || !(error instanceof RepriseError) || !NOT_THERE.has(error.code)) return error;
  return new RepriseError("USAGE", `There is no file ${resolve(file)}, and no run has that id. Check the path.`);
}

interface Section {
  readonly file: string;
  readonly report: BundleReport;
  readonly named: readonly NamedRun[];
}

/** The runs of bundle files. Their entries are read one run at a time. */
export class Bundles implements AsyncDisposable {
  readonly #sections: readonly Section[];
  readonly #unreadable: readonly ReadRun[];
  readonly #levels: readonly VerifyLevel[];
  readonly #opened: readonly OpenedBundle[];

  private constructor(
    sections: readonly Section[],
    unreadable: readonly ReadRun[],
    levels: readonly VerifyLevel[],
    opened: readonly OpenedBundle[],
  ) {
    this.#opened = opened;
    this.#sections = sections;
    this.#unreadable = unreadable;
    this.#levels = levels;
  }

  /** Checks every section. */
  static async open(
    files: readonly string[],
    keys: readonly VerifyingKey[],
    levels: readonly VerifyLevel[],
    options: OpenBundleOptions,
  ): Promise<Bundles> {
    const sections: Section[] = [];
    const unreadable: ReadRun[] = [];
    const opened: OpenedBundle[] = [];
    for (const file of new Set(files))
      try {
        const input = await openBundle(file, options);
        opened.push(input);
        for await (const checked of checkBundle(input, keys)) {
          const report = await withLogProof(checked, keys);
          const isNamed = levels.includes(2) && report.problem === undefined;
          sections.push({ file, report, named: isNamed ? await namedInSection(input, report) : [] });
        }
      } catch (error) {
        if (!(error instanceof RepriseError) || error.code !== "BUNDLE_DAMAGED") throw error;
        unreadable.push(unreadableRun(file, error));
      }
    return new Bundles(sections, unreadable, levels, opened);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#opened) await one[Symbol.asyncDispose]();
  }

  get size(): number {
    return this.#sections.length + this.#unreadable.length;
  }

  async *runs(): AsyncGenerator<ReadRun> {
    yield* this.#unreadable;
    for (const section of this.#sections) yield await this.#read(section);
  }

  /** The only run, or the one with this id and generation. */
  find(file: string, id?: string, generation?: number): Promise<ReadRun> {
    const [unreadable] = this.#unreadable;
    if (unreadable !== undefined) return Promise.resolve(unreadable);
    const fits = this.#sections.filter(
      ({ report: { run } }) =>
        (id === undefined || run.id === id) && (generation === undefined || run.generation === generation),
    );
    // The newest generation, as in a store.
    const newest = fits.toSorted((a, b) => b.report.run.generation - a.report.run.generation)[0];
    const ids = [...new Set(this.#sections.map(({ report }) => report.run.id))];
    if (newest === undefined || (id === undefined && ids.length > 1))
      throw new RepriseError(
        "USAGE",
        `${file} has the runs ${ids.slice(0, MAX_NAMED).join(", ")}${ids.length > MAX_NAMED ? ", …" : ""}. Choose one of them with --id, and its generation with --generation.`,
      );
    return this.#read(newest);
  }

  async #read({ file, report, named }: Section): Promise<ReadRun> {
    const { run, journal, statement, chain, claim, problem, signature } = report;
    const reports = this.#sections.map((one) => one.report);
    const findings: Finding[] = [...bundleFindings(report, this.#levels)];
    const fork = await findFork(report, reports);
    if (fork !== undefined)
      findings.push({
        status: "forked",
        message: `the bundles have two histories of run ${fork.run}: they differ within the first ${fork.size} entries.`,
      });
    const isReplayed = this.#levels.includes(3) && problem === undefined;
    if (isReplayed && journal === undefined)
      findings.push({
        status: "incomplete",
        message: `a bundle of form ${report.form} has no payloads to replay. Get one that was made with --full.`,
      });
    const entries = isReplayed ? await bundledEntries(report) : [];
    const { id, generation, definition, kind, version } = run;
    const history = await readFork(bundleHistory(reports), kind, entries);
    return {
      id,
      generation,
      definition,
      kind,
      version,
      head: report.entries,
      chain: chain ?? statement?.chain ?? "",
      ...history,
      fault: undefined,
      findings: [...findings, ...(history.findings ?? [])],
      missing: missingFrom(reports, named),
      runtimes: statement?.runtimes ?? [],
      file,
      ...outputIn(claim),
      ...(signature.status === "trusted" && { signer: signature.origin }),
    };
  }
}

const MAX_NAMED = 5;

/** The key of the output, as the claim has it. */
function outputIn(claim: string): { readonly output?: string } {
  try {
    const { output } = JSON.parse(claim) as { readonly output?: unknown };
    return typeof output === "string" ? { output } : {};
  } catch {
    // The section says itself what is wrong with its claim.
    return {};
  }
}

/** A file without a first section: it names no run. */
function unreadableRun(file: string, { message, details }: RepriseError): ReadRun {
  const line = details?.["line"];
  return {
    id: file,
    generation: 0,
    definition: "",
    kind: "workflow",
    version: undefined,
    head: 0,
    chain: "",
    entries: [],
    fault: undefined,
    findings: [{ status: "damaged", message, ...(line !== undefined && { where: `line ${Number(line)}` }) }],
    missing: [],
    runtimes: [],
    file,
  };
}
