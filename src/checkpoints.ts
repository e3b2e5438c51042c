// reprise/checkpoints: checkpoints and recorded calls of graphs as data, for other programs and other languages.

export {
  checkpointFromJson,
  checkpointToJson,
  recordedIO,
  workItemFromJson,
  workItemToJson,
  type Checkpoint,
  type CheckpointJsonOptions,
  type RecordedIO,
  type WorkItem,
} from "./graph/index.ts";
