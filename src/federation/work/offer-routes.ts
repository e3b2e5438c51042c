// Offer routes: what a peer may ask the book, as routes of a site's server. The server has found out by the token which peer asks.
//
// offer-routes.H1. A body of another form is refused before anything happens.
// offer-routes.H2. Every peer may ask; the book knows which peers it has work for, and refuses the others.

import { RepriseError } from "../../base/index.ts";
import type { Route } from "../serve/route.ts";
import type { OfferBook } from "./offer-book.ts";
import type { ClaimRequest, End, EndsRequest, InputsRequest, RenewRequest } from "./offer.ts";

const SMALL = 1024 * 1024;
/** A result has at most 8 MiB, which JSON may escape. */
const LARGE = 24 * 1024 * 1024;
const MAX_WAIT_MS = 30_000;
const MAX_NAMES = 10_000;

/** The routes of a site whose peers execute work for it. */
export function offerRoutes(book: OfferBook): readonly Route[] {
  return [
    { ...route("claim", SMALL, checkClaim, (request, ...by) => book.claim(by[0], request, by[1])), waits: () => true },
    route("renew", SMALL, checkRenew, (request, peer) => book.renew(peer, request)),
    route("end", LARGE, checkEnds, (request, peer) => book.ends(peer, request)),
    route("inputs", SMALL, checkInputs, (request, peer) => book.inputs(peer, request)),
  ];
}

function route<T>(
  name: string,
  bytes: number,
  check: (fields: Fields) => T | undefined,
  answer: (request: T, peer: string, signal: AbortSignal) => object | Promise<object>,
): Route {
  return {
    method: "POST",
    path: new RegExp(`^/offers/${name}$`),
    access: "peer",
    body: { name: "artifactBytes", bytes },
    async handle(call) {
      const { peer, signal } = call;
      const body = await call.json();
      const request = typeof body === "object" && body !== null ? check(body as Fields) : undefined;
      if (request === undefined || peer === undefined)
        throw new RepriseError(
          "RESULT_REFUSED",
          `The request to /offers/${name} has a form that this version does not know.`,
        );
      return Response.json(await answer(request, peer.name, signal), { headers: { "cache-control": "no-store" } });
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
function checkInputs({ keys }: Fields): InputsRequest | undefined {
  return isTexts(keys) ? { keys } : undefined;
}
function checkEnds({ ends }: Fields): EndsRequest | undefined {
  if (!Array.isArray(ends) || ends.length > MAX_NAMES) return undefined;
  const checked = ends.map((end) => checkEnd((end ?? {}) as Fields));
  return checked.every((end) => end !== undefined) ? { ends: checked } : undefined;
}
function checkEnd({ offer, declined, statement, result, error, retryAfterMs }: Fields): End | undefined {
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
