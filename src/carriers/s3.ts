// S3: a carrier in a bucket of Amazon S3 or of a server that speaks its protocol: `s3://bucket/prefix?endpoint=https://host&region=…`.
//
// s3.B1. Requests are signed (SigV4) with the hash of the body, so that a body which was changed on its way is not stored.
// s3.B2. Before the first write, the carrier proves that the server checks conditions: one that ignores `If-None-Match` would
//   overwrite files of others. It does so on a file of its own, `~carrier`, which no list shows.
// s3.B3. A bucket cannot notify: who waits polls.

import type { AwsV4Signer } from "aws4fetch";
import { RepriseError, sha256Hex } from "../base/index.ts";
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
import { HttpClient, refused, type HttpAnswer, type HttpRequest } from "./http-client.ts";
import { placeOf, type S3Place } from "./s3-place.ts";
import { listIn, s3Error, s3ErrorCode } from "./s3-xml.ts";
import { pause, readUntilChanged } from "./waiting.ts";

/** The file that proves conditions. */
const PROBE = "~carrier";
/** InternalError, and a write that ran beside another one (ConditionalRequestConflict). */
const TRANSIENT = [409, 500];

/** Opens a bucket. The keys come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. */
export async function openS3(url: string, options: CarrierOptions): Promise<S3Carrier> {
  const place = placeOf(url, options.env ?? process.env);
  const Signer = await loadSigner();
  const send = async (target: string, init: RequestInit): Promise<Response> => {
    const { "accept-encoding": encoding, "user-agent": agent, ...headers } = init.headers as Record<string, string>;
    const body = init.body as Uint8Array<ArrayBuffer> | undefined;
    const signed = await new Signer({
      ...place.keys,
      method: init.method ?? "GET",
      url: target,
      service: "s3",
      region: place.region,
      datetime: new Date(options.clock.now()).toISOString().replace(/[:-]|\.\d{3}/g, ""),
      headers: { ...headers, "x-amz-content-sha256": sha256Hex(body ?? "") },
      cache: place.cache,
    }).sign();
    // Not signed: proxies may change them.
    signed.headers.set("accept-encoding", encoding ?? "identity");
    signed.headers.set("user-agent", agent ?? "");
    return fetch(target, { ...init, headers: signed.headers });
  };
  return new S3Carrier(place, options, send);
}

async function loadSigner(): Promise<typeof AwsV4Signer> {
  try {
    return (await import("aws4fetch")).AwsV4Signer;
  } catch (error) {
    throw new RepriseError(
      "DRIVER_MISSING",
      "A carrier in S3 needs the package `aws4fetch`, which is not installed. Run `npm install aws4fetch`.",
      { cause: error },
    );
  }
}

export class S3Carrier implements Carrier {
  readonly url: string;
  readonly #place: S3Place;
  readonly #ports: CarrierPorts;
  readonly #limits: CarrierLimits;
  readonly #client: HttpClient;
  #proof: Promise<void> | undefined;

  constructor(place: S3Place, options: CarrierOptions, send: (url: string, init: RequestInit) => Promise<Response>) {
    this.url = place.name;
    this.#place = place;
    this.#ports = options;
    this.#limits = { ...CARRIER_LIMITS, ...options.limits };
    this.#client = new HttpClient(place.name, options, this.#limits, { send, transient: TRANSIENT });
  }

  async get(path: string, options: GetOptions = {}): Promise<CarrierFile | "unchanged" | undefined> {
    checkPath(path);
    options.signal?.throwIfAborted();
    const { pollMs } = this.#limits;
    return readUntilChanged(
      () => this.#get(path, options),
      options,
      this.#ports,
      // s3.B3
      (leftMs) => pause(this.#ports, Math.min(pollMs, leftMs), options.signal),
    );
  }

  async #get(path: string, { after, signal, maxBytes }: GetOptions): Promise<CarrierFile | "unchanged" | undefined> {
    const answer = await this.#request("GET", path, {
      headers: after === undefined ? {} : { "if-none-match": after },
      signal,
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
    if (answer.status === 304 && after !== undefined) return "unchanged";
    if (answer.status === 404 && s3ErrorCode(answer) === "NoSuchKey") return undefined;
    if (answer.status !== 200) throw s3Error(this.url, path, answer);
    const etag = answer.headers.get("etag") ?? `"${sha256Hex(answer.bytes)}"`;
    return etag === after ? "unchanged" : { bytes: answer.bytes, etag };
  }

  async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<Etag | "refused"> {
    checkPath(path);
    options.signal?.throwIfAborted();
    await this.#prove();
    const match = "match" in options ? options.match : null;
    const answer = await this.#put(path, bytes, match, options.signal);
    if (answer === "refused") return "refused";
    if (answer.status === 412) return answer.isRepeated ? this.#wasOurs(path, bytes) : "refused";
    const etag = answer.headers.get("etag");
    if (etag !== null) return etag;
    throw refused(this.url, path, "stored a file without naming its version (ETag)");
  }

  /** The answer with 200 or 412; "refused" if the file to replace does not exist. */
  async #put(
    path: string,
    bytes: Uint8Array,
    match: Etag | null,
    signal?: AbortSignal,
  ): Promise<HttpAnswer | "refused"> {
    const condition: Record<string, string> = match === null ? { "if-none-match": "*" } : { "if-match": match };
    const headers = { ...condition, "content-type": "application/octet-stream" };
    const answer = await this.#request("PUT", path, { headers, body: bytes, signal });
    if (answer.status === 200 || answer.status === 412) return answer;
    if (answer.status === 404 && s3ErrorCode(answer) === "NoSuchKey") return "refused";
    throw s3Error(this.url, path, answer);
  }

  /** As http.R2. */
  async #wasOurs(path: string, bytes: Uint8Array): Promise<Etag | "refused"> {
    const found = await this.#get(path, { maxBytes: bytes.length }).catch((error: unknown) => {
      if (error instanceof RepriseError && error.code === "LIMIT_EXCEEDED") return undefined;
      throw error;
    });
    const isOurs = found !== undefined && found !== "unchanged" && Buffer.compare(found.bytes, bytes) === 0;
    return isOurs ? found.etag : "refused";
  }

  /** s3.B2 */
  async #prove(): Promise<void> {
    this.#proof ??= this.#proveConditions().catch((error: unknown) => {
      this.#proof = undefined;
      throw error;
    });
    await this.#proof;
  }

  async #proveConditions(): Promise<void> {
    const bytes = Buffer.from("This file shows that the server checks conditions.\n");
    const isRefused = async (match: Etag | null): Promise<boolean> => {
      const answer = await this.#put(PROBE, bytes, match);
      return answer === "refused" || answer.status === 412;
    };
    const checksAbsent = (await isRefused(null)) || (await isRefused(null));
    if (checksAbsent && (await isRefused(`"${"0".repeat(32)}"`))) return;
    throw refused(
      this.url,
      PROBE,
      "stores files without checking If-None-Match and If-Match, so two writers would overwrite each other. Use a server with conditional writes (Amazon S3, Cloudflare R2, MinIO, versitygw), or write from one site through `reprise serve`",
    );
  }

  async *list(prefix: string, { shallow = false }: ListOptions = {}): AsyncIterable<string> {
    checkPrefix(prefix);
    const what = prefix === "" ? "the list of files" : `the list of ${prefix}`;
    const root = this.#place.prefix;
    for (let next: string | undefined = ""; next !== undefined;) {
      const query = new URLSearchParams({ "list-type": "2", prefix: `${root}${prefix}` });
      if (shallow) query.set("delimiter", "/");
      if (next !== "") query.set("continuation-token", next);
      // As SigV4 writes it: a space is %20.
      const url = `${this.#place.base}?${query.toString().replaceAll("+", "%20")}`;
      const answer = await this.#client.request({ method: "GET", url, path: what });
      if (answer.status !== 200) throw s3Error(this.url, what, answer);
      const page = listIn(answer.bytes);
      for (const key of page.keys) {
        if (!key.startsWith(`${root}${prefix}`))
          throw refused(this.url, what, `listed ${JSON.stringify(key.slice(0, 200))}, which is not below it`);
        const path = key.slice(root.length);
        // Other programs may keep files here too; their names lead nowhere (carrier.C5).
        if (path === PROBE || !path.replace(/\/$/, "").split("/").every(isFileName)) continue;
        yield path;
      }
      next = page.next;
    }
  }

  async remove(path: string): Promise<void> {
    const answer = await this.#request("DELETE", checkPath(path), {});
    const isGone = answer.status === 404 && s3ErrorCode(answer) === "NoSuchKey";
    if (answer.status !== 204 && answer.status !== 200 && !isGone) throw s3Error(this.url, path, answer);
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  async #request(method: HttpRequest["method"], path: string, more: Partial<HttpRequest>): Promise<HttpAnswer> {
    const key = `${this.#place.prefix}${path}`.split("/").map(encodeURIComponent).join("/");
    return this.#client.request({ ...more, method, url: `${this.#place.base}/${key}`, path });
  }
}
