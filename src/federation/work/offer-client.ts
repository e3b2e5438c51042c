// OfferClient: how a peer asks a home for work, over HTTP.
//
// offer-client.C1. Redirects are not followed, and an answer has a limit: the home may be anyone who answers at that address.

import { RepriseError } from "../../base/index.ts";
import type {
  ClaimAnswer,
  ClaimRequest,
  EndsAnswer,
  EndsRequest,
  InputsAnswer,
  InputsRequest,
  Offer,
  RenewAnswer,
  RenewRequest,
} from "./offer.ts";

/** A site that this one executes work for. */
export interface WorkHome {
  readonly name: string;
  /** Where it serves: `https://…`. */
  readonly url: string;
  readonly token: string | undefined;
}

/** The home refused a request for good: to repeat it would not help. */
export class RefusedByHome extends Error {
  override readonly name = "RefusedByHome";
}

/** Timeout, too many requests. */
const TRY_LATER: ReadonlySet<number> = new Set([408, 429]);
const MAX_ANSWER = 64 * 1024 * 1024;

export class OfferClient {
  readonly home: WorkHome;

  constructor(home: WorkHome) {
    this.home = home;
  }

  claim(request: ClaimRequest, signal: AbortSignal): Promise<ClaimAnswer> {
    return this.#post("/offers/claim", request, isClaimAnswer, signal);
  }
  renew(request: RenewRequest, signal: AbortSignal): Promise<RenewAnswer> {
    return this.#post("/offers/renew", request, ({ gone }) => isTexts(gone), signal);
  }
  ends(request: EndsRequest, signal: AbortSignal): Promise<EndsAnswer> {
    const isAnswer = ({ answers }: Fields): boolean => Array.isArray(answers) && answers.length === request.ends.length;
    return this.#post("/offers/end", request, isAnswer, signal);
  }
  inputs(request: InputsRequest, signal: AbortSignal): Promise<InputsAnswer> {
    return this.#post("/offers/inputs", request, ({ texts }) => isTextsByKey(texts), signal);
  }

  async #post<T>(path: string, body: object, isAnswer: (fields: Fields) => boolean, signal: AbortSignal): Promise<T> {
    const { name, url, token } = this.home;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${url.replace(/\/+$/, "")}${path}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(body),
        redirect: "manual",
        signal,
      });
      text = await readText(response);
    } catch (cause) {
      throw new RepriseError("PEER_UNREACHABLE", `${name} does not answer at ${url}: ${reasonOf(cause)}.`, { cause });
    }
    const answer = parsed(text);
    if (response.status === 200 && isAnswer(answer)) return answer as T;
    const { code, message } = answer;
    const said = [code, message].filter((one) => typeof one === "string").join(": ");
    const what = `${name} refused ${path} with status ${response.status}${said === "" ? "" : `: ${said}`}.`;
    if (response.status >= 400 && response.status < 500 && !TRY_LATER.has(response.status))
      throw new RefusedByHome(what);
    throw new RepriseError("PEER_UNREACHABLE", what);
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** offer-client.C1 */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER) throw new Error(`the answer has more than ${MAX_ANSWER} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parsed(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error && cause.message !== "" ? cause.message : message;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isTextsByKey(value: unknown): boolean {
  return typeof value === "object" && value !== null && isTexts(Object.values(value));
}

function isClaimAnswer({ offers, gone, leaseMs }: Fields): boolean {
  return Array.isArray(offers) && offers.every(isOffer) && isTexts(gone) && typeof leaseMs === "number" && leaseMs > 0;
}

function isOffer(value: unknown): value is Offer {
  const fields = (value ?? {}) as Fields;
  return (
    ["offer", "run", "command", "task", "idempotencyKey"].every((name) => typeof fields[name] === "string") &&
    ["generation", "epoch", "attempt", "execution"].every((name) => Number.isSafeInteger(fields[name])) &&
    (fields["input"] === undefined || typeof fields["input"] === "string") &&
    (fields["timeoutMs"] === undefined || Number.isSafeInteger(fields["timeoutMs"]))
  );
}
