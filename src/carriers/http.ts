// HTTP: the files of a site that runs `reprise serve`, or of any static web server, which can be read but not written.
//
// The conventions, for both sides. `<base>` is the URL of the carrier, `<path>` a path of carrier.C5.
//
//   GET <base>/<path>            200 with the bytes and a strong `ETag`; 404 if there is none.
//     If-None-Match: <etag>      304 if the file still has this version.
//     ?wait=<seconds>            a decimal number. With If-None-Match the server answers 304 only after this time (it may answer earlier),
//                                and at once when the file changes. Without, it waits likewise before 404.
//   PUT <base>/<path>            200 or 201 with the new `ETag`. The client always sends one condition:
//     If-None-Match: *           412 if the file exists.
//     If-Match: <etag>           412 if the file does not exist or has another version.
//   DELETE <base>/<path>         204, also if there is none.
//   GET <base>/?list=<prefix>    200, text/plain, a path per line: the files below the prefix ("" or ending with "/"), or, with
//                                `&shallow=1`, its direct children, folders with "/" at their end. 404 or 501 where the server has no list.
//   Authorization: Bearer <token>  401 without a token, 403 if the token does not allow it.
//   413 a body is too long; 429 and 503 later, with `Retry-After: <seconds>`.
//   Errors have the body {"code": "<CODE>", "message": "…"} (application/json). If the code is of the family "federation" of the
//   catalogue, the client throws it; else CARRIER_REFUSED.
//
// http.R1. Nothing that the server sends is trusted: http-client.ts bounds it, and callers verify it (carrier.C1).
// http.R2. A conditional PUT may be repeated: if it is refused the second time and the file has our bytes, ours was first.

import { ERROR_CATALOGUE, isErrorCode, RepriseError, sha256Hex } from "../base/index.ts";
import {
  CARRIER_LIMITS,
  checkPath,
  checkPrefix,
  isFileName,
  type Carrier,
  type CarrierFile,
  type CarrierLimits,
  type CarrierOptions,
  type CarrierPorts,
  type Etag,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "./carrier.ts";
import { HttpClient, refused, type HttpAnswer } from "./http-client.ts";
import { pause, readUntilChanged } from "./waiting.ts";

/** Proxies cut a connection that is silent for a minute. */
const MAX_WAIT_MS = 30_000;

/** Opens the files of a web server: `https://host/path`. */
export function openHttp(url: string, options: CarrierOptions): HttpCarrier {
  const parsed = new URL(url);
  if (parsed.username !== "" || parsed.password !== "" || parsed.search !== "" || parsed.hash !== "") {
    throw new RepriseError(
      "BAD_CARRIER_URL",
      `${parsed.origin}${parsed.pathname}: the URL of a carrier has no user name, password, query or fragment. Pass a token with the option \`token\`.`,
    );
  }
  return new HttpCarrier(`${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}`, options);
}

export class HttpCarrier implements Carrier {
  readonly url: string;
  readonly #ports: CarrierPorts;
  readonly #limits: CarrierLimits;
  readonly #client: HttpClient;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, options: CarrierOptions) {
    this.url = url;
    this.#ports = options;
    this.#limits = { ...CARRIER_LIMITS, ...options.limits };
    this.#client = new HttpClient(url, options, this.#limits);
    this.#headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  }

  async get(path: string, options: GetOptions = {}): Promise<CarrierFile | "unchanged" | undefined> {
    checkPath(path);
    options.signal?.throwIfAborted();
    const { clock } = this.#ports;
    let askedAt = 0;
    return readUntilChanged(
      (leftMs) => {
        askedAt = clock.monotonic();
        return this.#get(path, options, Math.min(leftMs, MAX_WAIT_MS));
      },
      options,
      this.#ports,
      async (leftMs) => {
        // A server that waits needs no pause; a static one answers at once.
        const restMs = Math.min(this.#limits.pollMs - (clock.monotonic() - askedAt), leftMs);
        if (restMs > 0) await pause(this.#ports, restMs, options.signal);
      },
    );
  }

  async #get(path: string, options: GetOptions, waitMs: number): Promise<CarrierFile | "unchanged" | undefined> {
    const { after, signal, maxBytes } = options;
    const answer = await this.#client.request({
      method: "GET",
      url: `${this.url}/${path}${waitMs > 0 ? `?wait=${waitMs / 1_000}` : ""}`,
      path,
      headers: { ...this.#headers, ...(after === undefined ? {} : { "if-none-match": after }) },
      waitMs,
      signal,
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
    if (answer.status === 304 && after !== undefined) return "unchanged";
    if (answer.status === 404 || answer.status === 410) return undefined;
    if (answer.status !== 200) throw errorOf(this.url, path, answer);
    const { bytes, headers } = answer;
    // Some static servers have no versions.
    const etag = headers.get("etag") ?? `"sha256-${sha256Hex(bytes)}"`;
    return etag === after ? "unchanged" : { bytes, etag };
  }

  async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<Etag | "refused"> {
    checkPath(path);
    options.signal?.throwIfAborted();
    const match = "match" in options ? options.match : null;
    const answer = await this.#client.request({
      method: "PUT",
      url: `${this.url}/${path}`,
      path,
      headers: {
        ...this.#headers,
        "content-type": "application/octet-stream",
        ...(match === null ? { "if-none-match": "*" } : { "if-match": match }),
      },
      body: bytes,
      signal: options.signal,
    });
    if (answer.status === 412) return answer.isRepeated ? this.#wasOurs(path, bytes) : "refused";
    if (answer.status !== 200 && answer.status !== 201) throw errorOf(this.url, path, answer);
    const etag = answer.headers.get("etag");
    if (etag !== null) return etag;
    throw refused(
      this.url,
      path,
      "stored a file without naming its version (ETag), so it may not check conditions: write to a server that runs `reprise serve`",
    );
  }

  /** http.R2 */
  async #wasOurs(path: string, bytes: Uint8Array): Promise<Etag | "refused"> {
    const found = await this.#get(path, { maxBytes: bytes.length }, 0).catch((error: unknown) => {
      if (error instanceof RepriseError && error.code === "LIMIT_EXCEEDED") return undefined;
      throw error;
    });
    return found !== undefined && found !== "unchanged" && Buffer.compare(found.bytes, bytes) === 0
      ? found.etag
      : "refused";
  }

  async *list(prefix: string, { shallow = false }: ListOptions = {}): AsyncIterable<string> {
    const url = `${this.url}/?list=${encodeURIComponent(checkPrefix(prefix))}${shallow ? "&shallow=1" : ""}`;
    const what = prefix === "" ? "the list of files" : `the list of ${prefix}`;
    const answer = await this.#client.request({ method: "GET", url, path: what, headers: this.#headers });
    if (answer.status !== 200) throw errorOf(this.url, what, answer);
    for (const line of Buffer.from(answer.bytes).toString("utf8").split("\n")) {
      if (line === "") continue;
      const names = line.replace(/\/$/, "").split("/");
      if (!line.startsWith(prefix) || !names.every(isFileName))
        throw refused(this.url, what, `listed ${JSON.stringify(line.slice(0, 200))}, which is no file below it`);
      yield line;
    }
  }

  async remove(path: string): Promise<void> {
    const url = `${this.url}/${checkPath(path)}`;
    const answer = await this.#client.request({ method: "DELETE", url, path, headers: this.#headers });
    if (![200, 204, 404, 410].includes(answer.status)) throw errorOf(this.url, path, answer);
  }

  async close(): Promise<void> {
    this.#client.close();
  }
}

/** The error that an answer means. */
export function errorOf(url: string, path: string, { status, headers, bytes }: HttpAnswer): RepriseError {
  if (status === 0 || (status >= 300 && status < 400)) {
    const to = (headers.get("location") ?? "an address it does not name").slice(0, 200);
    return refused(
      url,
      path,
      `answered with a redirect to ${to}, which Reprise does not follow. Configure the final address`,
      { status },
    );
  }
  const { code, message } = errorIn(bytes);
  const text = message === "" ? "" : `: ${message}`;
  const details = { url, path, status };
  if (isErrorCode(code) && ERROR_CATALOGUE[code].family === "federation")
    return new RepriseError(code, `${url} answered ${status} ${code} to ${path}${text}`, { details });
  if (status === 413)
    return new RepriseError("LIMIT_EXCEEDED", `${url} does not take ${path}, because it is too long${text}`, {
      details,
    });
  const hint = status === 401 || status === 403 ? " Check the token of this peer." : "";
  return refused(url, path, `answered ${status}${text}${hint}`, { status });
}

/** The text is of the other site: cut, and without control characters. */
function errorIn(bytes: Uint8Array): { readonly code: unknown; readonly message: string } {
  try {
    const { code, message } = JSON.parse(Buffer.from(bytes).toString("utf8")) as { code?: unknown; message?: unknown };
    return { code, message: typeof message === "string" ? message.replace(/\p{Cc}/gu, " ").slice(0, 500) : "" };
  } catch {
    return { code: undefined, message: "" };
  }
}
