// Offer routes: what a peer may ask the book, as routes of a server. The server has found out by the bearer token which peer asks.
//
// offer-routes.H1. A body of another form is refused before anything happens.

import { RepriseError } from "../../base/index.ts";
import type { OfferBook } from "./offer-book.ts";
import type { ClaimRequest, EndRequest, InputRequest, RenewRequest } from "./offer.ts";

/** A request with a JSON body and a JSON answer: `POST` to exactly this path. */
export interface PeerRoute {
  readonly path: string;
  /** The longest body. */
  readonly bodyBytes: number;
  /** Whether the answer may take long: the peer waits for work. */
  readonly waits: boolean;
  /** The answer for this peer. Throws a RepriseError for a request that is refused. */
  answer(body: unknown, peer: string, signal: AbortSignal): Promise<object>;
}

const SMALL = 1024 * 1024;
/** A result has at most 8 MiB, which JSON may escape. */
const LARGE = 24 * 1024 * 1024;
const MAX_WAIT_MS = 30_000;
const MAX_NAMES = 10_000;

/** The routes of a site whose peers execute work for it. */
export function offerRoutes(book: OfferBook): readonly PeerRoute[] {
  return [
    route("/offers/claim", SMALL, checkClaim, (request, peer, signal) => book.claim(peer, request, signal)),
    route("/offers/renew", SMALL, checkRenew, (request, peer) => book.renew(peer, request)),
    route("/offers/end", LARGE, checkEnd, (request, peer) => book.end(peer, request)),
    route("/offers/input", SMALL, checkInput, ({ key }, peer) => ({ text: book.input(peer, key) })),
  ];
}

function route<T>(
  path: string,
  bodyBytes: number,
  check: (fields: Fields) => T | undefined,
  call: (request: T, peer: string, signal: AbortSignal) => object | Promise<object>,
): PeerRoute {
  return {
    path,
    bodyBytes,
    waits: path === "/offers/claim",
    async answer(body, peer, signal) {
      const request = typeof body === "object" && body !== null ? check(body as Fields) : undefined;
      if (request === undefined)
        throw new RepriseError(
          "RESULT_REFUSED",
          `The request of ${peer} to ${path} has another form than this version knows.`,
        );
      return call(request, peer, signal);
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_NAMES && value.every((one) => typeof one === "string");
}
function isTextOrAbsent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

function checkClaim({ tasks, free, waitMs = 0 }: Fields): ClaimRequest | undefined {
  if (!isTexts(tasks) || !isCount(free) || !isCount(waitMs)) return undefined;
  return { tasks, free, waitMs: Math.min(waitMs, MAX_WAIT_MS) };
}
function checkRenew({ offers, free }: Fields): RenewRequest | undefined {
  return isTexts(offers) && isCount(free) ? { offers, free } : undefined;
}
function checkInput({ key }: Fields): InputRequest | undefined {
  return typeof key === "string" ? { key } : undefined;
}
function checkEnd({ offer, declined, statement, result, error, retryAfterMs }: Fields): EndRequest | undefined {
  if (typeof offer !== "string") return undefined;
  if (declined !== undefined) return typeof declined === "string" ? { offer, declined } : undefined;
  if (typeof statement !== "string" || !isTextOrAbsent(result) || !isTextOrAbsent(error)) return undefined;
  if (retryAfterMs !== undefined && !isCount(retryAfterMs)) return undefined;
  return {
    offer,
    statement,
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}
