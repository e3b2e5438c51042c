// S3 server: a stand-in for S3 in memory. It checks signatures (SigV4, written from its specification and not with the client's package)
// and hashes of bodies, has conditional writes, ListObjectsV2 in pages, and answers errors in XML.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface S3ServerOptions {
  /** How many keys a page of a list has. */
  readonly pageSize?: number;
  /** Lists keys that do not have the prefix. */
  readonly listsEverything?: boolean;
  /** As servers that do not know conditional writes. */
  readonly ignoresConditions?: boolean;
  /** Sees each request that was signed well; a code is answered instead of it. */
  readonly fails?: (request: IncomingMessage) => readonly [status: number, code: string] | undefined;
}

interface StoredObject {
  readonly bytes: Buffer;
  readonly etag: string;
}

export const S3_KEYS = {
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};
const BUCKET = "history";
const REGION = "eu-test-1";

class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message = code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, data: string): Buffer => createHmac("sha256", key).update(data).digest();
/** RFC 3986, as SigV4 writes paths and queries. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
const xml = (text: string): string => text.replace(/[<>&"']/g, (char) => `&#${char.charCodeAt(0)};`);

export class S3Server implements AsyncDisposable {
  readonly objects = new Map<string, StoredObject>();
  readonly requests: string[] = [];
  readonly #options: S3ServerOptions;
  readonly #server = createServer((request, response) => {
    void this.#answer(request, response).catch((error: unknown) => {
      const { status, code, message } =
        error instanceof Refusal ? error : new Refusal(500, "InternalError", String(error));
      const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${xml(message)}</Message></Error>`;
      response.writeHead(status, { "content-type": "application/xml" }).end(status === 304 ? undefined : body);
    });
  });

  constructor(options: S3ServerOptions = {}) {
    this.#options = options;
  }

  static async start(options?: S3ServerOptions): Promise<S3Server> {
    const server = new S3Server(options);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `s3://${BUCKET}/sites/a%20b?endpoint=${encodeURIComponent(this.endpoint)}&region=${REGION}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "" } = request;
    this.requests.push(`${method} ${request.url}`);
    const body = await buffer(request);
    const url = new URL(request.url ?? "", this.endpoint);
    checkSignature(request, url, body);
    const failure = this.#options.fails?.(request);
    if (failure !== undefined) throw new Refusal(...failure);
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split("/");
    if (bucket !== BUCKET) throw new Refusal(404, "NoSuchBucket", "The specified bucket does not exist");
    const key = rest.join("/");
    if (key === "" && method === "GET") return void response.end(this.#list(url.searchParams));
    const there = this.objects.get(key);
    const { "if-match": match, "if-none-match": noneMatch } = request.headers;
    if (method === "DELETE") {
      this.objects.delete(key);
      return void response.writeHead(204).end();
    }
    if (method === "PUT") {
      if (!this.#options.ignoresConditions) {
        if (noneMatch === "*" && there !== undefined) throw new Refusal(412, "PreconditionFailed");
        if (match !== undefined && there === undefined) throw new Refusal(404, "NoSuchKey");
        if (match !== undefined && match !== there?.etag) throw new Refusal(412, "PreconditionFailed");
      }
      const etag = `"${createHash("md5").update(body).digest("hex")}"`;
      this.objects.set(key, { bytes: body, etag });
      return void response.writeHead(200, { etag }).end();
    }
    if (there === undefined) throw new Refusal(404, "NoSuchKey", "The specified key does not exist.");
    if (noneMatch === there.etag) throw new Refusal(304, "NotModified");
    response.writeHead(200, { etag: there.etag }).end(there.bytes);
  }

  #list(query: URLSearchParams): string {
    const prefix = this.#options.listsEverything ? "" : (query.get("prefix") ?? "");
    const delimiter = query.get("delimiter");
    const after = Buffer.from(query.get("continuation-token") ?? "", "base64url").toString();
    const below = [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    const names = below.map((key) => {
      const end = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length);
      return end === -1 ? key : key.slice(0, end + 1);
    });
    const rest = [...new Set(names)].filter((name) => name > after);
    const page = rest.slice(0, this.#options.pageSize ?? 1_000);
    const isCut = page.length < rest.length;
    const lines = page.map((name) =>
      name.endsWith("/")
        ? `<CommonPrefixes><Prefix>${xml(name)}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${xml(name)}</Key><Size>${this.objects.get(name)!.bytes.length}</Size></Contents>`,
    );
    const token = isCut
      ? `<NextContinuationToken>${Buffer.from(page.at(-1)!).toString("base64url")}</NextContinuationToken>`
      : "";
    return `<ListBucketResult><IsTruncated>${isCut}</IsTruncated><Prefix>${xml(prefix)}</Prefix>${token}${lines.join("")}</ListBucketResult>`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html */
function checkSignature({ method = "", headers }: IncomingMessage, url: URL, body: Buffer): void {
  const said = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? "",
  );
  if (said === null) throw new Refusal(403, "AccessDenied");
  const [, id, scope = "", signedHeaders = "", signature = ""] = said;
  const date = String(headers["x-amz-date"]);
  if (id !== S3_KEYS.AWS_ACCESS_KEY_ID) throw new Refusal(403, "InvalidAccessKeyId");
  if (scope !== `${date.slice(0, 8)}/${REGION}/s3/aws4_request`) throw new Refusal(400, "AuthorizationHeaderMalformed");
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!(Math.abs(Date.now() - at) < 15 * 60_000)) throw new Refusal(403, "RequestTimeTooSkewed");
  const names = signedHeaders.split(";");
  for (const needed of ["host", "x-amz-content-sha256", "x-amz-date"])
    if (!names.includes(needed)) throw new Refusal(403, "AccessDenied", `${needed} is not signed`);
  const query = [...url.searchParams]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join("&");
  const canonical = [
    method,
    decodeURIComponent(url.pathname).split("/").map(escaped).join("/"),
    query,
    ...names.map((name) => `${name}:${String(headers[name]).trim().replace(/\s+/g, " ")}`),
    "",
    signedHeaders,
    headers["x-amz-content-sha256"],
  ].join("\n");
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n");
  const secret = `AWS4${S3_KEYS.AWS_SECRET_ACCESS_KEY}`;
  const key = hmac(hmac(hmac(hmac(secret, date.slice(0, 8)), REGION), "s3"), "aws4_request");
  const isRight = timingSafeEqual(hmac(key, text), Buffer.from(signature, "hex"));
  if (!isRight) throw new Refusal(403, "SignatureDoesNotMatch");
  if (headers["x-amz-content-sha256"] !== sha256(body)) throw new Refusal(400, "XAmzContentSHA256Mismatch");
}
