// Export SLSA: in-toto statements with the predicate SLSA provenance v1: one of the run, then one of each step that generated a value.
//
// export-slsa.A1. A digest is the SHA-256 of a value's text. Blind keys come without texts, so that a statement of a step, and the
//   output of the run, have no digest to give: only the claim is a subject then.

import { sha256Hex } from "../base/index.ts";
import { invocationOf, isoTime, stepsOf, valueUri, type ExportContext, type ExportedStep } from "./export-parts.ts";
import type { ExportedRun } from "./read-provenance.ts";

const STATEMENT = "https://in-toto.io/Statement/v1";
const PREDICATE = "https://slsa.dev/provenance/v1";
const BUILD_TYPE = "urn:reprise:run:v1";

interface Descriptor {
  readonly name: string;
  readonly uri?: string;
  readonly digest?: { readonly sha256: string };
}

type Subject = Descriptor & { readonly digest: { readonly sha256: string } };

export function* exportSlsa(exported: ExportedRun, context: ExportContext): Iterable<object> {
  yield runStatement(exported, context);
  for (const step of stepsOf(exported)) {
    const subject = step.generated.flatMap((key) => subjectOf(exported, step.command, key));
    if (subject.length > 0) yield stepStatement(exported, context, step, subject);
  }
}

function runStatement(exported: ExportedRun, context: ExportContext): object {
  const { record, claim, input, output } = exported;
  const subject: Subject[] = [{ name: "claim", digest: { sha256: sha256Hex(claim.text) } }];
  if (output !== undefined) subject.push(...subjectOf(exported, "output", output));
  return statement(exported, context, subject, {
    externalParameters: externalOf(exported, input),
    internalParameters: { claim: claim.key, generation: record.generation, tags: record.tags },
    dependencies: input === undefined ? [] : [dependencyOf(exported, "input", input)],
    invocation: invocationOf(exported),
  });
}

function stepStatement(
  exported: ExportedRun,
  context: ExportContext,
  { step, command, used }: ExportedStep,
  subject: readonly Subject[],
): object {
  return statement(exported, context, subject, {
    externalParameters: {
      command: step.command,
      kind: step.kind,
      ...(step.name !== undefined && { name: step.name }),
      ...(step.in !== undefined && { input: step.in }),
    },
    internalParameters: { run: invocationOf(exported) },
    dependencies: used.map((key) => dependencyOf(exported, "input", key)),
    invocation: invocationOf(exported, command),
  });
}

function externalOf({ record }: ExportedRun, input: string | undefined): object {
  const { definition, kind, version } = record;
  return { definition, kind, version, ...(input !== undefined && { input }) };
}

interface Build {
  readonly externalParameters: object;
  readonly internalParameters: object;
  readonly dependencies: readonly Descriptor[];
  readonly invocation: string;
}

function statement(
  { record }: ExportedRun,
  { origin, engine }: ExportContext,
  subject: readonly Subject[],
  { externalParameters, internalParameters, dependencies, invocation }: Build,
): object {
  const { createdAt, endedAt } = record;
  const [name = "reprise", version = ""] = engine.split("/");
  return {
    _type: STATEMENT,
    subject,
    predicateType: PREDICATE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters,
        internalParameters,
        resolvedDependencies: dependencies,
      },
      runDetails: {
        builder: { id: `urn:reprise:origin:${encodeURIComponent(origin)}`, version: { [name]: version } },
        metadata: {
          invocationId: invocation,
          startedOn: isoTime(createdAt),
          ...(endedAt !== undefined && { finishedOn: isoTime(endedAt) }),
        },
      },
    },
  };
}

/** export-slsa.A1. None without a checksum: a subject must have a digest. */
function subjectOf({ checksums }: ExportedRun, name: string, key: string): readonly Subject[] {
  const sha256 = checksums.get(key);
  return sha256 === undefined ? [] : [{ name, uri: valueUri(key), digest: { sha256 } }];
}

function dependencyOf({ checksums }: ExportedRun, name: string, key: string): Descriptor {
  const sha256 = checksums.get(key);
  return { name, uri: valueUri(key), ...(sha256 !== undefined && { digest: { sha256 } }) };
}
