// Limits: how much a site takes from others at once. Beyond a limit nothing is written, and the code is LIMIT_EXCEEDED.

export interface HomeLimits {
  /** Records in a batch. */
  readonly batchRecords: number;
  /** Bytes of the records and small contents of a batch; one artifact or journal may be larger alone. */
  readonly batchBytes: number;
  readonly artifactBytes: number;
  readonly journalBytes: number;
  /** Logs that a home keeps. */
  readonly origins: number;
}

const MIB = 1024 * 1024;

export const DEFAULT_LIMITS: HomeLimits = {
  batchRecords: 4_096,
  batchBytes: 8 * MIB,
  artifactBytes: 16 * MIB,
  journalBytes: 256 * MIB,
  origins: 1_024,
};
