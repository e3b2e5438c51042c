// Reference: what a row holds in place of a payload that is made of contents.
//
// reference.R1. The text begins with a character that no payload begins with, then comes a JSON list: the number of the run that owns the
//   contents, and the pieces in their order. A piece is the key of a content, a range of one, or a short text of its own. The run is
//   named, so a reference says by itself where its contents are.
// reference.R2. A content may be a reference, too: a list with thousands of pieces is a tree, and two lists that begin alike share its
//   nodes. A node ends after a piece whose key says so, not after a number of pieces, so that nodes stay the same when a list loses its
//   first pieces.

import type { RunNumber } from "../../kernel/index.ts";

export const REFERENCE_MARK = 0x02;
const MARK = "\u0002";

/** The key of a content, a range of its text, or a text. */
export type Piece = string | readonly [key: string, from: number, length: number] | readonly [text: string];

export interface Reference {
  readonly run: RunNumber;
  readonly pieces: readonly Piece[];
}

export function isReference(text: string): boolean {
  return text.charCodeAt(0) === REFERENCE_MARK;
}

export function formatReference({ run, pieces }: Reference): string {
  return MARK + JSON.stringify([run, ...pieces]);
}

/** Undefined: the text is damaged. */
export function parseReference(text: string): Reference | undefined {
  try {
    const [run, ...pieces] = JSON.parse(text.slice(1)) as [number, ...Piece[]];
    return Number.isSafeInteger(run) && pieces.every(isPiece) ? { run, pieces } : undefined;
  } catch {
    return undefined;
  }
}

function isPiece(piece: unknown): piece is Piece {
  if (typeof piece === "string") return true;
  if (!Array.isArray(piece)) return false;
  const [text, from, length] = piece as unknown[];
  return (
    typeof text === "string" && (piece.length === 1 || (Number.isSafeInteger(from) && Number.isSafeInteger(length)))
  );
}

/** The key of a piece; undefined for a text of its own. */
export function keyOfPiece(piece: Piece): string | undefined {
  if (typeof piece === "string") return piece;
  return piece.length === 1 ? undefined : piece[0];
}

/** A list with more pieces becomes a tree. */
const MOST_PIECES = 12;
const LONGEST_NODE = 32;
/** One key of 4 ends a node: keys are digests in base64url. */
const ENDS = "AEIMQUYcgkosw048";

/** reference.R2. `addNode` stores a node and returns its key. */
export function groupPieces(pieces: readonly Piece[], addNode: (pieces: readonly Piece[]) => string): readonly Piece[] {
  let level = pieces;
  while (level.length > MOST_PIECES) {
    // What the text begins with likely says which payload it is.
    const next: Piece[] = level.slice(0, 1);
    let node: Piece[] = [];
    for (const piece of level.slice(1)) {
      node.push(piece);
      if (node.length < LONGEST_NODE && !endsNode(piece)) continue;
      next.push(node.length === 1 ? piece : addNode(node));
      node = [];
    }
    // What the list ends with is likely to grow.
    next.push(...node);
    if (next.length >= level.length) break;
    level = next;
  }
  return level;
}

function endsNode(piece: Piece): boolean {
  const key = keyOfPiece(piece);
  return key !== undefined && ENDS.includes(key.at(-1)!);
}
