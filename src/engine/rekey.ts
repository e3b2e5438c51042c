// rekey: rewrites every payload of a store with the current key, while its workers run.

import {
  checkCodec,
  checkOptionNames,
  RepriseError,
  systemClock,
  systemRandom,
  systemTimers,
  type PayloadCodec,
} from "../base/index.ts";
import { storeOf, type StoreSource } from "../stores/index.ts";

/** Options of `rekey`. */
export interface RekeyOptions {
  /** The database, as in `createEngine`. */
  readonly store: string | StoreSource;
  /** A codec that writes with the new key and still reads the old ones. */
  readonly codec: PayloadCodec;
  /** Called with the number of payloads rewritten so far. */
  readonly onProgress?: (done: number, total: number) => void;
}

/**
 * Rewrites every payload of a store with the codec's current key; afterwards the old keys are no longer needed.
 *
 * @example
 * ```ts
 * import { randomBytes } from "node:crypto";
 * import { aesGcm, rekey } from "reprise";
 * const codec = aesGcm({ keys: { "2026-11": randomBytes(32), "2027-02": randomBytes(32) }, current: "2027-02" });
 * const { payloads, unreadable } = await rekey({ store: "sqlite::memory:", codec });
 * console.log(payloads, unreadable);
 * ```
 */
export async function rekey(
  options: RekeyOptions,
): Promise<{ readonly payloads: number; readonly unreadable: number }> {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `rekey: expected { store, codec }, got ${String(options)}.`);
  checkOptionNames(options, ["codec", "onProgress", "store"], "rekey");
  const codec = checkCodec(options.codec);
  if (codec === undefined) throw new RepriseError("BAD_OPTIONS", "rekey: expected a `codec` to write payloads with.");
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  const store = await storeOf(options.store)["~open"]({ ...ports, durability: "full", codec });
  try {
    return await store.rekey(options.onProgress);
  } finally {
    await store.close();
  }
}
