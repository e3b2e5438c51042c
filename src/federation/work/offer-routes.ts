// Offer routes: the book over HTTP. The server has found out by the bearer token which peer asks.
//
// offer-routes.H1. A body that is too long, or of another form, is refused before anything happens.

import { RepriseError } from "../../base/index.ts";
import type { OfferBook } from "./offer-book.ts";
import type { ClaimRequest, EndRequest, InputRequest, RenewRequest } from "./offer.ts";

/** A route beside those of the files: `POST` to exactly this path. */
export interface PeerRoute {
  readonly method: "POST";
  readonly path: string;
  /** `peer`: the name of the admitted peer. */
  handle(request: Request, peer: string): Promise<Response>;
}

/** A result has at most 8 MiB, which JSON may escape. */
const MAX_BODY = 24 * 1024 * 1024;
const MAX_WAIT_MS = 30_000;
const MAX_NAMES = 10_000;

/** The routes of `reprise serve` for peers that execute work of this site. */
export function offerRoutes(book: OfferBook): readonly PeerRoute[] {
  return [
    route("/offers/claim", checkClaim, (request, peer, signal) => book.claim(peer, request, signal)),
    route("/offers/renew", checkRenew, (request, peer) => book.renew(peer, request)),
    route("/offers/end", checkEnd, (request, peer) => book.end(peer, request)),
    route("/offers/input", checkInput, ({ key }, peer) => {
      const text = book.input(peer, key);
      return text === undefined ? undefined : { text };
    }),
  ];
}

function route<T>(
  path: string,
  check: (fields: Fields) => T | undefined,
  call: (request: T, peer: string, signal: AbortSignal) => unknown,
): PeerRoute {
  return {
    method: "POST",
    path,
    async handle(request, peer) {
      try {
        const body = check(await readJson(request));
        if (body === undefined) throw badBody(`it is no request for ${path}`);
        const answer = await call(body, peer, request.signal);
        return answer === undefined ? json(404, { error: { code: "NotPublished" } }) : json(200, answer);
      } catch (error) {
        if (!(error instanceof RepriseError)) throw error;
        return json(error.code === "NOT_ADMITTED" ? 403 : 400, { error: { code: error.code, message: error.message } });
      }
    },
  };
}

function json(status: number, value: unknown): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });
}

type Fields = Readonly<Record<string, unknown>>;

async function readJson(request: Request): Promise<Fields> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY) throw badBody(`it has more than ${MAX_BODY} bytes`);
    chunks.push(chunk);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Fields;
  } catch {
    // Refused below.
  }
  throw badBody("it is no JSON object");
}

function badBody(why: string): RepriseError {
  return new RepriseError("RESULT_REFUSED", `The body of the request is refused: ${why}.`);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_NAMES && value.every((one) => typeof one === "string");
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
function isTextOrAbsent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}
