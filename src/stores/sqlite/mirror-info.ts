// Mirror info: the row of `meta` that makes a SQLite file a mirror, and the error of a write to it.

import { RepriseError, shellWord } from "../../base/index.ts";

/** The key in `meta`. A store without this row is not a mirror. */
export const MIRROR_KEY = "mirror";

/** Where the runs of a mirror come from. */
export interface MirrorInfo {
  /** The name that people write before the `/`: `prod/order-7`. */
  readonly name: string;
  /** The origin that signed the bundles: a name and a part of its key. Undefined: no bundle was imported. */
  readonly origin?: string;
  /** The store that runs were pulled from last, without its password. Undefined: none was pulled. */
  readonly url?: string;
  /** The URL had a password, which the mirror does not keep. */
  readonly hasPassword?: boolean;
}

export function parseMirrorInfo(text: string): MirrorInfo {
  return JSON.parse(text) as MirrorInfo;
}

/** `what` names the refused work. */
export function mirrorRefusal({ name, url }: MirrorInfo, what: string): RepriseError {
  const home = url === undefined ? "the store that runs them" : shellWord(url);
  return new RepriseError(
    "STORE_IS_MIRROR",
    `${what}: this file is a mirror. It holds copies of the runs of ${name}, and only \`reprise pull\` and \`reprise import\` change it. To change a run, use its own store: --store ${home}.`,
    { details: { mirror: name, ...(url !== undefined && { store: url }) } },
  );
}
