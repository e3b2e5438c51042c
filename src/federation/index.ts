// Federation: sites that work alone and share their history: logs of signed records, and contents named by their keys.
//
// `log` is pure: records, their order, cells, trees, notes and the files of a log. `carriers` are the places that files are exchanged
// through. `home` is the directory with everything that a site knows of itself and of others. `sync` moves records between store, home
// and carriers. `serve` answers other sites. `work` runs tasks for them.

export {
  CARRIER_LIMITS,
  checkPath,
  checkPrefix,
  type Carrier,
  type CarrierFile,
  type CarrierLimits,
  type CarrierOptions,
  type CarrierPorts,
  type Etag,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "./carriers/carrier.ts";
export { openCarrier } from "./carriers/open-carrier.ts";
export { cellOf, joinCell, stateOfCell, type Cell, type CellState } from "./log/cell.ts";
export { openCheckpoint, parseCheckpoint, signCheckpoint, type Checkpoint } from "./log/checkpoint.ts";
export {
  checkContent,
  contentHead,
  contentOf,
  decodeArtifact,
  encodeArtifact,
  isContentHead,
  type Content,
  type ContentHead,
} from "./log/content.ts";
export { batchLength, KeyHistory } from "./log/key-history.ts";
export { linkEnds, linkId, linkText, MAX_LINK_ENDS, parseLink, slotOf, type Link, type LinkRole } from "./log/link.ts";
export { areForkedHeads, relationOf, type LogCopy, type LogRelation } from "./log/log-relation.ts";
export { LogTree } from "./log/log-tree.ts";
export { cosignNote, findSigners, MAX_NOTE_BYTES, parseNote, type Note, type NoteSignature } from "./log/note.ts";
export { findOriginParts, firstEpoch, isOrigin, nextEpoch, originParts, type Origin } from "./log/origin.ts";
export { MAX_PACKED_BYTES, packText, parsePack } from "./log/pack.ts";
export { homeBundle } from "./sync/home-bundle.ts";
export { checkBundleWithLog, checkLogProof, ownLogLines } from "./sync/log-proof.ts";
export { openHome } from "./home/home.ts";
export { compareMarks, compareRecords, recordId, type Mark } from "./log/record-order.ts";
export {
  MAX_CLOCK_JUMP,
  MAX_RECORD_BYTES,
  nextRecord,
  parseRecord,
  recordText,
  type ExpectedRecord,
  type LogEnd,
  type LogRecord,
  type RecordBody,
  type RecordOp,
} from "./log/record.ts";
export {
  closedCut,
  isClosedCut,
  isInSnapshot,
  parseSnapshot,
  snapshotId,
  snapshotText,
  type SeenOf,
  type SnapshotHeads,
} from "./log/snapshot.ts";
export { foldRecords, stateHash, stateHashOf, stateLineOf, type StateLine } from "./log/state-hash.ts";
export { tileRoot, TileStack, type Tile } from "./log/tile-stack.ts";
export {
  artifactPath,
  CHECKPOINT_PATH,
  decodeEntries,
  decodeTile,
  encodeEntries,
  encodeTile,
  handoverPath,
  journalPath,
  packPath,
  TILE_WIDTH,
  tilePath,
  tilesOf,
  type TileName,
} from "./log/tiles.ts";
export {
  consistencyProof,
  hashesOf,
  inclusionProof,
  rootOf,
  verifyConsistency,
  verifyInclusion,
  type HashAt,
  type TreeHead,
} from "./log/tree-proof.ts";
export { createHomeFolder, findKeyIn, getKeyIn, KEY_VARIABLE, type OwnKey } from "./key-file.ts";
export { readSettings, removePeer, settingsFile, writePeer } from "./settings-file.ts";
export type {
  ExecuteSettings,
  FederationSettings,
  MemoTrust,
  PeerSettings,
  PublishedPayloads,
  PublishRule,
  WorkTargets,
} from "./settings.ts";
export type {
  ArchiveReport,
  ConflictInfo,
  EraseReport,
  ExchangeOptions,
  FederatedRun,
  Federation,
  FederationOptions,
  FederationStatus,
  GcReport,
  OriginInfo,
  PeerInfo,
  RunsFilter,
  SiteServer,
  ServeOptions,
  SnapshotChange,
  SnapshotInfo,
  SyncReport,
  TracedRelation,
} from "./api.ts";
export { createFederation, openFederation } from "./federation.ts";
export {
  createFederationHandler,
  type FederationHandler,
  type FederationHandlerOptions,
} from "./serve/federation-handler.ts";
export { listen, type Listener, type ListenOptions } from "./serve/listener.ts";
export { tokenDigest, type PeerAccess } from "./serve/peer-access.ts";
export type { Access, Call, Route } from "./serve/route.ts";
export type { ServeLimits } from "./serve/serve-limits.ts";
export { listSnapshotsIn } from "./site-snapshots.ts";
