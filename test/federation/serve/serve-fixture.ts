// A site on a real socket, logs to fill it with, and a client that speaks HTTP to it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { HttpCarrier } from "../../../src/carriers/http.ts";
import { openHome, type Home } from "../../../src/federation/home/home.ts";
import { signCheckpoint, type Checkpoint } from "../../../src/federation/log/checkpoint.ts";
import { contentOf, type Content } from "../../../src/federation/log/content.ts";
import { LogTree } from "../../../src/federation/log/log-tree.ts";
import { packText } from "../../../src/federation/log/pack.ts";
import { nextRecord, recordText, type RecordBody } from "../../../src/federation/log/record.ts";
import { encodeEntries, packPath, TILE_WIDTH, tilePath } from "../../../src/federation/log/tiles.ts";
import {
  createFederationHandler,
  type FederationHandler,
  type FederationHandlerOptions,
} from "../../../src/federation/serve/federation-handler.ts";
import { listen, type Listener } from "../../../src/http/index.ts";
import type { PeerAccess } from "../../../src/federation/serve/peer-access.ts";
import { tokenDigest } from "../../../src/http/index.ts";
import { signingKeyOf, type SigningKey } from "../../../src/receipts/index.ts";

export function keyOf(name: string, first = 1): SigningKey {
  return signingKeyOf(
    Uint8Array.from({ length: 32 }, (_, i) => (i + first) % 256),
    name,
  );
}

/** A log in memory, as its own site has it. */
export class SampleLog {
  readonly key: SigningKey;
  readonly origin: string;
  readonly records: string[] = [];
  readonly contents: Content[] = [];
  readonly #tree = LogTree.empty();
  #clock = 0;

  constructor(key: SigningKey = keyOf("edge7")) {
    this.key = key;
    this.origin = key.origin;
  }

  append(body: RecordBody): this {
    const record = nextRecord({ origin: this.origin, size: this.records.length, clock: this.#clock }, body);
    this.#clock = record.c;
    this.records.push(recordText(record));
    this.#tree.append(this.records.at(-1)!);
    return this;
  }

  /** Records with a small content each. */
  grow(count: number): this {
    for (let i = 0; i < count; i += 1) {
      const content = contentOf("text/plain", `${this.origin} content ${this.records.length + 1}`);
      this.contents.push(content);
      this.append({ op: "put", k: content.key });
    }
    return this;
  }

  get size(): number {
    return this.records.length;
  }

  checkpoint(): Checkpoint {
    return this.signedBy(this.key);
  }

  signedBy(key: SigningKey): Checkpoint {
    return signCheckpoint(key, this.origin, this.size, this.#tree.root());
  }
}

/** Takes the log into the home, as a sync would. */
export function take(home: Home, log: SampleLog): void {
  home.admit(log.key.vkey);
  const checkpoint = log.checkpoint();
  for (let from = home.origin(log.origin)!.cursor; from < log.size;) {
    const records = log.records.slice(from, from + 4_096);
    const contents = log.contents.slice(from, from + 4_096);
    const outcome = home.ingest({ origin: log.origin, records, checkpoint, contents, journals: [] });
    if (outcome.status !== "ingested") throw new Error(JSON.stringify(outcome));
    from += records.length;
  }
}

export const TOKEN = "token-of-the-edge-0001";
export const OTHER_TOKEN = "token-of-the-hub-00002";

export const EDGE: PeerAccess = {
  name: "edge",
  tokenSha256: tokenDigest(TOKEN),
  pull: ["*"],
  push: true,
  grants: ["work:gpu"],
};
export const HUB: PeerAccess = {
  name: "hub",
  tokenSha256: tokenDigest(OTHER_TOKEN),
  pull: ["*"],
  push: true,
  grants: [],
};

export interface Site {
  readonly dir: string;
  readonly home: Home;
  readonly handler: FederationHandler;
  readonly listener: Listener;
  readonly url: string;
  readonly errors: unknown[];
  /** The number of requests so far. */
  requests(): number;
  /** A request with the token of the edge, unless the options have another. */
  send(path: string, options?: RequestInit & { readonly token?: string | null }): Promise<Response>;
  put(path: string, bytes: string | Uint8Array, condition?: Record<string, string>, token?: string): Promise<Response>;
  carrier(token?: string): HttpCarrier;
  close(): Promise<void>;
}

export function freshFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), "reprise-serve-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Starts a site on a free port. */
export async function startSite(
  options: Partial<FederationHandlerOptions> & { readonly dir?: string } = {},
): Promise<Site> {
  const dir = options.dir ?? freshFolder();
  const home = openHome(dir);
  const errors: unknown[] = [];
  let requests = 0;
  const handler = createFederationHandler(home, {
    peers: () => [EDGE, HUB],
    rules: () => [{ to: ["*"], payloads: "full", origins: ["*"] }],
    onError: (error) => errors.push(error),
    ...options,
  });
  const counted = (request: Request): Promise<Response> => {
    requests += 1;
    return handler(request);
  };
  const listener = await listen(Object.assign(counted, { close: () => handler.close() }), {
    timers: options.timers ?? systemTimers,
  });
  const { url } = listener;
  const send: Site["send"] = (path, { token = TOKEN, headers, ...init } = {}) =>
    fetch(`${url}${path}`, {
      ...init,
      headers: { ...(headers as Record<string, string>), ...(token !== null && { authorization: `Bearer ${token}` }) },
    });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      await listener.close();
      home.close();
    })());
  onTestFinished(close);
  return {
    dir,
    home,
    handler,
    listener,
    url,
    errors,
    requests: () => requests,
    send,
    put: (path, bytes, condition = { "if-none-match": "*" }, token = TOKEN) =>
      send(path, { method: "PUT", body: bytes as Uint8Array<ArrayBuffer>, headers: condition, token }),
    carrier: (token = TOKEN) =>
      new HttpCarrier(url, { token, clock: systemClock, timers: systemTimers, random: systemRandom }),
    close,
  };
}

/** Uploads everything of a log after `from` but its checkpoint. */
export async function uploadFiles(site: Site, log: SampleLog, from = 0, token = TOKEN): Promise<void> {
  for (let tile = Math.floor(from / TILE_WIDTH); tile * TILE_WIDTH < log.size; tile += 1) {
    const [start, end] = [tile * TILE_WIDTH, Math.min(log.size, (tile + 1) * TILE_WIDTH)];
    const pack = packText(log.contents.slice(start, end));
    const files: [string, string | Uint8Array][] = [
      [packPath(tile, end - start), pack],
      [tilePath("entries", tile, end - start), encodeEntries(log.records.slice(start, end))],
    ];
    for (const [path, bytes] of files) {
      const { status } = await site.put(`/${log.origin}/${path}`, bytes, undefined, token);
      if (status !== 201 && status !== 412) throw new Error(`${path}: ${status}`);
    }
  }
}

/** Uploads the checkpoint over the one that the site has. */
export async function uploadCheckpoint(site: Site, log: SampleLog, token = TOKEN): Promise<Response> {
  const path = `/${log.origin}/checkpoint`;
  const there = await site.send(path, { token });
  const etag = there.status === 200 ? there.headers.get("etag") : null;
  await there.body?.cancel();
  return site.put(path, log.checkpoint().note, etag === null ? undefined : { "if-match": etag }, token);
}

/** Code and status of a refusal. */
export async function refusalOf(response: Response): Promise<[number, string]> {
  return [response.status, ((await response.json()) as { code: string }).code];
}
