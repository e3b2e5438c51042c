// Scheduler: the metrics of a graph's run (seed 000). Only the types; the room `graph` counts.

/** The six metrics of seed 000, since the start of the run. */
export interface SchedulerMetrics {
  /** Committed steps. */
  readonly totalSteps: number;
  /** Ended attempts of nodes, successful or not. */
  readonly totalNodesExecuted: number;
  /** Average time from one checkpoint to the next. */
  readonly avgStepLatencyMs: number;
  /** The highest number of items of one step that waited in memory. */
  readonly maxQueueDepth: number;
  /** Failed attempts that are retried. */
  readonly totalRetries: number;
  /** How often an item waited because the queue was full. */
  readonly totalBackpressureBlocks: number;
}
