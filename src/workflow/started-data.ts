// Started data: the text of the first entry of a run.

import { encode } from "../base/index.ts";
import type { ModelNames, QueueSlot, TraceContext } from "../kernel/index.ts";
import { record } from "./entry-data.ts";

export interface StartedFields {
  readonly definition: string;
  readonly version: number;
  readonly flags: readonly number[];
  readonly budget?: string | undefined;
  readonly deadlineMs?: number | undefined;
  readonly input: string | undefined;
  /** Forks: the encoded origin. */
  readonly forked?: string | undefined;
  /** Forks: the seed of the origin. */
  readonly seed?: bigint | undefined;
  /** The queue and the singleton key of the run. A retry restores them. */
  readonly slot?: QueueSlot | undefined;
  readonly singleton?: string | undefined;
  /** fork.F8 */
  readonly models?: ModelNames | undefined;
  /** telemetry.T2 */
  readonly trace?: TraceContext | undefined;
  /** The payload limit in bytes, if it is lower than the maximum. */
  readonly payloadLimit?: number | undefined;
  /** Random. Set only if payloads are encrypted. */
  readonly salt?: string | undefined;
  /** The definition has update ports: the run may wait for updates only. */
  readonly updates?: boolean;
}
export function startedData(fields: StartedFields): string {
  return record({
    budget: fields.budget,
    deadline: fields.deadlineMs === undefined ? undefined : String(fields.deadlineMs),
    definition: encode(fields.definition),
    flags: `[${fields.flags.join(",")}]`,
    forked: fields.forked,
    input: fields.input,
    line: fields.slot === undefined ? undefined : encode(fields.slot),
    models: fields.models === undefined ? undefined : encode(fields.models),
    payloadLimit: fields.payloadLimit === undefined ? undefined : String(fields.payloadLimit),
    salt: fields.salt === undefined ? undefined : encode(fields.salt),
    seed: fields.seed === undefined ? undefined : encode(fields.seed),
    singleton: fields.singleton === undefined ? undefined : encode(fields.singleton),
    trace: fields.trace === undefined ? undefined : encode(fields.trace),
    updates: fields.updates === true ? "true" : undefined,
    version: String(fields.version),
  });
}
