// Run record: the record of a run that a log names. It is made of the run's row and of the signing key, so a bundle and a log have the
// same one (write-bundle.W1).

import { RepriseError, sha256Hex } from "../base/index.ts";
import type { RunRecord } from "../kernel/index.ts";
import { blindText } from "./blind.ts";
import { runRecordKey, runRecordText, type RecordedRow } from "./bundled-run.ts";
import type { SigningKey } from "./signing-key.ts";

export interface RunRecordOptions {
  /** Undefined: the record is not signed by anyone, and what would be secret follows from the run. */
  readonly key: SigningKey | undefined;
  /** The salt of a blind record. */
  readonly salt?: Uint8Array | undefined;
  /** The run ended before its store was federated. */
  readonly isAdopted?: boolean | undefined;
}

export interface RunRecordArtifact {
  readonly key: string;
  readonly text: string;
}

/** The run record of a row. */
export function runRecordOf(
  row: RecordedRow & Pick<RunRecord, "head" | "chain">,
  { key, salt, isAdopted = false }: RunRecordOptions,
): RunRecordArtifact {
  const { head, chain } = row;
  const nonce = nonceOf(row, key);
  const text = runRecordText({ run: row, head, chain: chainOf(chain, salt), nonce, isAdopted });
  return { key: runRecordKey(text), text };
}

/** write-bundle.W1. `salt`: that of entry 1, in hex; undefined: it has none. */
export function saltOf(
  salt: string | undefined,
  { id, generation }: Pick<RunRecord, "id" | "generation">,
  key: SigningKey | undefined,
): Buffer {
  if (salt !== undefined) return Buffer.from(salt, "hex");
  if (key !== undefined) return key.derive(`salt/${generation}/${id}`, 16);
  throw new RepriseError("BAD_OPTIONS", "A blind bundle of a run without a salt needs a signing key: `reprise key`.");
}

/** write-bundle.W1. Without a key there is no secret to derive it from. */
function nonceOf(
  { id, generation, head, chain }: Pick<RunRecord, "id" | "generation" | "head" | "chain">,
  key: SigningKey | undefined,
): string {
  const use = `nonce/${generation}/${head}/${id}`;
  return key === undefined ? sha256Hex(`${use}/${chain}`).slice(0, 32) : key.derive(use, 16).toString("hex");
}

/** statement.S2 */
export function chainOf(chain: string, salt: Uint8Array | undefined): string {
  return salt === undefined ? chain : blindText(salt, "chain", chain);
}
