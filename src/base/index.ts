// Base: what everything else is written in. Errors, durations, the codec, hashes, counted randomness, names, and the
// ports through which the machine is reached. Knows nothing of runs and imports no other room.
//
// B1. Apart from system.ts, everything here is a function of its arguments.
// B2. Whatever this room refuses, it refuses with a RepriseError whose code is in the catalogue.

export { aesGcm, type AesGcmOptions } from "./aes-gcm.ts";
export { approachable } from "./approachable.ts";
export { backoffMs, checkRetryPolicy, type RetryPolicy } from "./backoff.ts";
export { canonicalJson, decode, encode, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, type PayloadLimits } from "./codec.ts";
export { digest, digestOf, sha256Hex, sha256HexOf } from "./digest.ts";
export { formatMs, toMs, type Duration, type Unit } from "./duration.ts";
export { ERROR_CATALOGUE, isErrorCode, type ErrorCode, type ErrorFamily } from "./error-catalogue.ts";
export {
  CancelledError,
  FatalError,
  invariant,
  InvariantError,
  RepriseError,
  type RepriseErrorOptions,
} from "./errors.ts";
export { functionWords } from "./function-words.ts";
export { checkName, checkRunId } from "./names.ts";
export { checkOptionNames } from "./options.ts";
export type { Clock, EpochMs, Random, TimerOptions, Timers } from "./ports.ts";
export { checkCodec, type PayloadCodec, type PayloadContext } from "./payload-codec.ts";
export { drawInt, drawUnit, drawUuid, seedOf } from "./random.ts";
export { needlesOf, REDACTED, redactData, redactText, secretKeys, type Needles } from "./redact.ts";
export { RetryLater } from "./retry-later.ts";
export { passwordHint, withoutPassword } from "./store-password.ts";
export { isThenable } from "./thenable.ts";
export { toBytes, type Size, type SizeUnit } from "./size.ts";
export { idleMs, systemClock, systemRandom, systemTimers } from "./system.ts";
export { Fifo } from "./fifo.ts";
export { SEALED, unreadableReason, unreadableText } from "./unreadable.ts";
