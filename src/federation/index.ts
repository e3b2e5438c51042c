// Federation: sites that work alone and share their history: logs of signed records, and contents named by their keys.
//
// `log` is pure: records, their order, cells, trees, notes and the files of a log. `home` is the directory with everything that a site knows of itself and of others. `sync` moves records between store, home
// and carriers. `serve` answers other sites. `work` runs tasks for them.

export {
  checkPath,
  checkPrefix,
  type Carrier,
  type CarrierFile,
  type CarrierOptions,
  type CarrierPorts,
  type GetOptions,
  type ListOptions,
  type PutOptions,
  openCarrier,
} from "../carriers/index.ts";
export { cellOf, joinCell, stateOfCell, type Cell, type CellState } from "./log/cell.ts";
export { openCheckpoint, signCheckpoint, type Checkpoint } from "./log/checkpoint.ts";
export { contentOf, type Content } from "./log/content.ts";
export { batchLength, KeyHistory } from "./log/key-history.ts";
export { linkId, linkText, slotOf } from "./log/link.ts";
export { relationOf, type LogCopy } from "./log/log-relation.ts";
export { LogTree } from "./log/log-tree.ts";
export { nextEpoch, type Origin } from "./log/origin.ts";
export { checkBundleWithLog, checkLogProof, ownLogLines } from "./sync/log-proof.ts";
export { openHome } from "./home/home.ts";
export { compareRecords, recordId } from "./log/record-order.ts";
export { nextRecord, parseRecord, recordText, type LogRecord, type RecordBody } from "./log/record.ts";
export { closedCut, isInSnapshot, snapshotId, type SnapshotHeads } from "./log/snapshot.ts";
export { foldRecords, stateHash, stateHashOf } from "./log/state-hash.ts";
export { TileStack, type Tile } from "./log/tile-stack.ts";
export { CHECKPOINT_PATH, encodeEntries, tilePath, tilesOf } from "./log/tiles.ts";
export { hashesOf, inclusionProof, rootOf, verifyInclusion } from "./log/tree-proof.ts";
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
export type { Site } from "./site.ts";
export { createFederationHandler } from "./serve/federation-handler.ts";
export type { Call } from "./serve/route.ts";
export { listSnapshotsIn } from "./site-snapshots.ts";
