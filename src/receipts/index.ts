// Receipts: what a run proves about itself, apart from its store: claim, statement, bundle.
//
// Pure: it reads journals through the Store port or from lines, and opens nothing. What is hashed is in each file, and in
// docs/reference/receipts.md.

export { blindKey, type KeyOf } from "./blind.ts";
export { bundleFindings, findFork, missingFrom, namedInSection } from "./bundle-evidence.ts";
export { bundledEntries, bundleHistory } from "./bundle-history.ts";
export {
  artifactLine,
  headerLine,
  MAX_LINE_BYTES,
  parseBundleLine,
  readBundle,
  readLines,
  type ArtifactLine,
  type BundleForm,
  type BundleHeader,
  type BundleInput,
  type Part,
} from "./bundle-lines.ts";
export { bundleText, isBundleText } from "./bundle-text.ts";
export { type BundledRun } from "./bundled-run.ts";
export { checkBundle, type BundleProblem, type BundleReport } from "./check-bundle.ts";
export { deriveClaim, readSteps, type Claim, claimKey } from "./claim.ts";
export { envelopeText, STATEMENT_TYPE, type Envelope } from "./dsse.ts";
export { exportOpenLineage } from "./export-openlineage.ts";
export { type ExportContext } from "./export-parts.ts";
export { exportProv } from "./export-prov.ts";
export { exportSlsa } from "./export-slsa.ts";
export { memberOf, readFamily, readGenerations, type FamilyMember } from "./family.ts";
export { listJournal, storeJournal, type JournalSource } from "./journal-source.ts";
export { journalLine } from "./journal-tree.ts";
export { leafHash, MerkleTree, nodeHash } from "./merkle.ts";
export { earlierGenerations, namedRunsIn, type NamedById, type NamedRun } from "./named-runs.ts";
export { Provenance, type Hop, type ProvenanceRun } from "./provenance.ts";
export { readExported, readProvenance, type ExportedRun } from "./read-provenance.ts";
export { readRun } from "./read-run.ts";
export { parseStatement, type Predicate } from "./statement.ts";
export { firstOrigin, parseVkey, signingKeyOf, signNote, type SigningKey, type VerifyingKey } from "./signing-key.ts";
export { stepText, type StepKind, type StepRecord } from "./steps.ts";
export { verdictOf, worstOf, type Finding, type Verdict, type VerifyLevel } from "./verdict.ts";
export { writeBundle, type BundleSource } from "./write-bundle.ts";
