// Bundle evidence: what the check of a bundle's sections says, as verdicts of their runs.
//
// bundle-evidence.E1. A signature of a known key that does not fit its text is damage: the text was changed after it was signed.
// bundle-evidence.E2. A run that has not ended, or was retried, may be in two bundles: the longer journal then begins with the shorter
//   one. If it does not, the signer has two histories of one run.

import { CHAIN_START, chainAfter } from "../kernel/index.ts";
import type { RunReference } from "./bundled-run.ts";
import type { BundleInput } from "./bundle-lines.ts";
import { readBundle } from "./bundle-lines.ts";
import type { BundleReport } from "./check-bundle.ts";
import { earlierGenerations, namedRunsIn, type NamedRun } from "./named-runs.ts";
import type { Finding, VerifyLevel } from "./verdict.ts";

/** Levels 0 and 1 of a section. */
export function bundleFindings(report: BundleReport, levels: readonly VerifyLevel[]): readonly Finding[] {
  const { problem } = report;
  if (problem !== undefined) {
    const { kind, line, message } = problem;
    return [{ status: kind, message: sentence(message), ...(line !== undefined && { where: `line ${line}` }) }];
  }
  return levels.includes(1) ? signatureFindings(report) : [];
}

function signatureFindings({ signature, statement }: BundleReport): readonly Finding[] {
  switch (signature.status) {
    case "trusted":
      if (statement?.origin === signature.origin) return [];
      return [
        {
          status: "untrusted",
          message: `its statement names the signer ${statement?.origin ?? ""}, but ${signature.origin} signed it.`,
        },
      ];
    case "unsigned":
      return [{ status: "unsigned", message: "the bundle has no signature." }];
    case "unknown_key":
      return [{ status: "untrusted", message: `it is signed by ${signature.keyid}, a key that is not admitted.` }];
    case "bad_signature":
      // bundle-evidence.E1
      return [{ status: "damaged", message: `its signature by ${signature.keyid} does not fit its statement.` }];
  }
}

function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

/** The runs that a section names. Without payloads, a child is known by the command that started it. */
export async function namedInSection(input: BundleInput, report: BundleReport): Promise<readonly NamedRun[]> {
  const { run, journal, statement } = report;
  const { id, generation } = run;
  const named: NamedRun[] = [...earlierGenerations(id, generation)];
  if (journal === undefined) {
    const { forked } = statement ?? {};
    if (forked !== undefined) named.push({ as: "origin of the fork", id: forked.run });
    for (const command of await childCommands(input, run))
      named.push({ as: "child", command, of: { run: id, generation } });
  } else for await (const page of journal.pages()) named.push(...namedRunsIn(page));
  return named;
}

async function childCommands(input: BundleInput, run: BundleReport["run"]): Promise<readonly string[]> {
  const commands = new Set<string>();
  let isInside = false;
  for await (const { value } of readBundle(input)) {
    if (value.line === "header")
      isInside = value.header.run.id === run.id && value.header.run.generation === run.generation;
    if (!isInside || value.line !== "leaf") continue;
    const { type, command } = JSON.parse(value.text) as { readonly type?: unknown; readonly command?: unknown };
    if (type === "ChildWorkflowInitiated") commands.add(String(command));
  }
  return [...commands];
}

/** Level 2: the named runs that none of the sections has. */
export function missingFrom(
  sections: readonly Pick<BundleReport, "run">[],
  named: readonly NamedRun[],
): readonly NamedRun[] {
  const ids = new Set(sections.map(({ run }) => run.id));
  const keys = new Set(sections.map(({ run }) => keyOf(run.id, run.generation)));
  const children = new Set(
    sections.flatMap(({ run: { parent } }) =>
      parent ? [`${keyOf(parent.run, parent.generation)} ${parent.command}`] : [],
    ),
  );
  return named.filter((one) => {
    if (one.as === "child" && "of" in one)
      return !children.has(`${keyOf(one.of.run, one.of.generation)} ${one.command}`);
    return one.generation === undefined ? !ids.has(one.id) : !keys.has(keyOf(one.id, one.generation));
  });
}

function keyOf(id: string, generation: number): string {
  return JSON.stringify([id, generation]);
}

/** bundle-evidence.E2. The other section of the same run that contradicts this one. */
export async function findFork(
  report: BundleReport,
  others: readonly BundleReport[],
): Promise<(RunReference & { readonly size: number }) | undefined> {
  const { run, statement } = report;
  for (const other of others) {
    const isSame = other.run.id === run.id && other.run.generation === run.generation;
    if (other === report || !isSame || other.statement?.origin !== statement?.origin) continue;
    if (other.problem !== undefined || report.problem !== undefined) continue;
    const [short, long] = other.entries < report.entries ? [other, report] : [report, other];
    const chain = await chainAt(long, short.entries);
    if (chain === undefined || short.chain === undefined || chain === short.chain) continue;
    return { run: run.id, generation: run.generation, size: short.entries };
  }
  return undefined;
}

async function chainAt({ journal, entries, chain }: BundleReport, size: number): Promise<string | undefined> {
  if (size === entries || journal === undefined) return size === entries ? chain : undefined;
  let at = CHAIN_START;
  for await (const page of journal.pages())
    for (const { seq, type, command, data } of page) {
      if (seq > size) return at;
      at = chainAfter(at, type, command, data);
    }
  return at;
}
