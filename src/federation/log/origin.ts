// Origin: the name of a log, which is also the name of the key that signs it and of the folder that its files are in.
//
// origin.O1. `<name>/<16 hex>`: the digits are the beginning of the SHA-256 of the first public key (signing-key.K1).
// origin.O2. A log that was written twice, after its store was restored from a backup, is closed. Its origin continues with a log of
//   its own: the second one is `<origin>/2`. Its first record names the last record of the closed log in `y`, so it sorts after it.

import { RepriseError } from "../../base/index.ts";

/** `<name>/<16 hex>`, and `/<epoch>` from the second epoch on. */
export type Origin = string;

const ORIGIN = /^(?!\.{1,2}\/)([A-Za-z0-9._-]{1,100})\/([0-9a-f]{16})(?:\/([1-9][0-9]{0,8}))?$/;

export interface OriginParts {
  readonly name: string;
  readonly digits: string;
  /** Counts from 1. */
  readonly epoch: number;
}

/** The parts of an origin; undefined for a text that is none. */
export function findOriginParts(text: string): OriginParts | undefined {
  const match = ORIGIN.exec(text);
  // The first epoch has one name only.
  if (match === null || match[3] === "1") return undefined;
  return { name: match[1]!, digits: match[2]!, epoch: Number(match[3] ?? 1) };
}

export function isOrigin(text: unknown): boolean {
  return typeof text === "string" && findOriginParts(text) !== undefined;
}

/** The parts of an origin; refuses a text that is none. */
export function originParts(origin: Origin): OriginParts {
  const parts = findOriginParts(origin);
  if (parts === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${JSON.stringify(origin.slice(0, 200))} is not an origin. An origin is <name>/<16 hex>; \`reprise key\` prints that of this site.`,
    );
  return parts;
}

/** The origin without its epoch. */
export function firstEpoch(origin: Origin): Origin {
  const { name, digits } = originParts(origin);
  return `${name}/${digits}`;
}

/** origin.O2. The origin of the log that follows this one. */
export function nextEpoch(origin: Origin): Origin {
  return `${firstEpoch(origin)}/${originParts(origin).epoch + 1}`;
}
