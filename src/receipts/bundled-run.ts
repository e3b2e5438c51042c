// Bundled run: the row of a run as a bundle has it, and the record that names it.

import { artifactKey, canonicalJson, mediaType, type EpochMs } from "../base/index.ts";
import { hasEnded, type DefinitionKind, type RunRecord, type RunStatus } from "../kernel/index.ts";

export interface RunReference {
  readonly run: string;
  readonly generation: number;
}

/** The parent by its public id: numbers of runs mean nothing in another store. */
export interface ParentReference extends RunReference {
  readonly command: string;
}

/** In the first line of a bundle. Signed as a whole: the statement holds a digest of its text. */
export interface BundledRun extends Omit<
  RunRecord,
  "run" | "parent" | "parentCommand" | "head" | "chain" | "evidence" | "runtime" | "endedAt" | "errorCode"
> {
  readonly parent?: ParentReference;
  readonly endedAt?: EpochMs;
  readonly errorCode?: string;
}

export type ClaimEnd = "completed" | "failed" | "cancelled" | "continued" | "open";

export function endOf(status: RunStatus): ClaimEnd {
  return hasEnded(status) ? status : "open";
}

/** The columns of a run's row that its record has. */
export type RecordedRow = Pick<
  BundledRun,
  "id" | "generation" | "kind" | "definition" | "version" | "status" | "createdAt"
> & { readonly endedAt?: EpochMs | undefined };

/** What the record of a run is made of. */
export interface RecordFacts {
  readonly run: RecordedRow;
  readonly head: number;
  readonly chain: string;
  /** 128 bits in hex. */
  readonly nonce: string;
  /** The run ended before its store was federated. */
  readonly isAdopted?: boolean;
}

/** The run record: made of the run's row alone. */
export function runRecordText({ run, head, chain, nonce, isAdopted = false }: RecordFacts): string {
  const { id, generation, kind, definition, version, status, createdAt, endedAt } = run;
  return canonicalJson({
    ...(isAdopted && { adopted: true }),
    chain,
    end: endOf(status),
    generation,
    id,
    kind: kind satisfies DefinitionKind,
    name: definition,
    nonce,
    size: head,
    times: endedAt === undefined ? [createdAt] : [createdAt, endedAt],
    v: 1,
    version,
  });
}

export function runRecordKey(text: string): string {
  return artifactKey(mediaType("run"), text);
}
