// Base: errors, durations, the codec, hashes, counter-based randomness, names, and the ports to the machine. Knows nothing
// about runs and imports no other room.
//
// base.B1. Apart from system.ts, everything here is a function of its arguments.
// base.B2. This room refuses a value only with a RepriseError whose code is in the catalogue.

// First: node-version.N1.
import "./node-version.ts";
export { aesGcm, type AesGcmOptions } from "./aes-gcm.ts";
export { artifactKey, mediaType, pae, secretArtifactKey, valueKey } from "./artifact-key.ts";
export { readableThrown } from "./readable-thrown.ts";
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
export { describeFunction } from "./describe-function.ts";
export { checkKey, checkName, checkRunId } from "./names.ts";
export { shellWord } from "./shell-word.ts";
export { checkOptionNames } from "./options.ts";
export { ENGINE_NAME } from "./package-version.ts";
export { plainJson } from "./plain-json.ts";
export type { Clock, EpochMs, Random, TimerOptions, Timers } from "./ports.ts";
export { checkCodec, type PayloadCodec, type PayloadContext } from "./payload-codec.ts";
export {
  clip,
  clipMiddle,
  escapeOf,
  plain,
  plainLines,
  pluralize,
  showValue,
  sizeText,
  textOf,
  UNSAFE_CHARACTERS,
} from "./plain-text.ts";
export { drawBytes, drawInt, drawUnit, drawUuid, seedOf } from "./random.ts";
export { needlesOf, REDACTED, redactData, redactText, secretKeys, type Needles } from "./redact.ts";
export { RetryLaterError } from "./retry-later-error.ts";
export { passwordHint, withoutPassword } from "./store-password.ts";
export { isThenable } from "./thenable.ts";
export { toBytes, type Size, type SizeUnit } from "./size.ts";
export { activeResources, idleMs, requireRealTime, systemClock, systemRandom, systemTimers } from "./system.ts";
export { Fifo } from "./fifo.ts";
export { userFrames, userStack } from "./user-stack.ts";
export {
  isSame,
  signWebhook,
  WEBHOOK_TOLERANCE_MS,
  webhookKeyOf,
  webhookRefusal,
  type SignedHeaders,
} from "./webhook-signature.ts";
export { CODEC_MARK, unreadableReason, unreadableText } from "./unreadable.ts";
