// Receipts: what a run proves about itself, apart from its store: claim, statement, bundle.
//
// Pure: it reads journals through the Store port or from lines, and opens nothing. What is hashed is in each file, and in
// docs/reference/receipts.md.

export { blindKey, type KeyOf } from "./blind.ts";
export { bundleFindings, findFork, missingFrom, namedInSection } from "./bundle-evidence.ts";
export { bundledEntries, bundleHistory } from "./bundle-history.ts";
export {
  artifactLine,
  type ArtifactLine,
  type BundleForm,
  type BundleHeader,
  type BundleInput,
  type LogLine,
  headerLine,
  logLine,
  MAX_LINE_BYTES,
  parseBundleLine,
  type Part,
  readBundle,
  readLines,
} from "./bundle-lines.ts";
export { bundleText, isBundleText } from "./bundle-text.ts";
export { type BundledRun } from "./bundled-run.ts";
export { type BundleProblem, type BundleReport, checkBundle } from "./check-bundle.ts";
export { type Claim, claimKey, deriveClaim, readSteps } from "./claim.ts";
export { checkSignature, type Envelope, envelopeText, parseEnvelope, STATEMENT_TYPE } from "./dsse.ts";
export { exportOpenLineage } from "./export-openlineage.ts";
export { type ExportContext } from "./export-parts.ts";
export { exportProv } from "./export-prov.ts";
export { exportSlsa } from "./export-slsa.ts";
export { type FamilyMember, memberOf, readFamily, readGenerations } from "./family.ts";
export { type JournalSource, listJournal, storeJournal } from "./journal-source.ts";
export { journalLine } from "./journal-tree.ts";
export { leafHash, MerkleTree, nodeHash } from "./merkle.ts";
export { earlierGenerations, type NamedById, type NamedRun, namedRunsIn } from "./named-runs.ts";
export { type Hop, Provenance, type ProvenanceRun } from "./provenance.ts";
export { type ExportedRun, readExported, readProvenance } from "./read-provenance.ts";
export { readRun } from "./read-run.ts";
export { runRecordOf, saltOf, type RunRecordArtifact, type RunRecordOptions } from "./run-record.ts";
export { firstOrigin, parseVkey, type SigningKey, signingKeyOf, signNote, type VerifyingKey } from "./signing-key.ts";
export { parseStatement, type Predicate } from "./statement.ts";
export { type StepKind, type StepRecord, stepText } from "./steps.ts";
export { type Finding, type Verdict, verdictOf, type VerifyLevel, worstOf } from "./verdict.ts";
export { type BundleSource, writeBundle } from "./write-bundle.ts";
