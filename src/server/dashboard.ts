// Dashboard: the files of the dashboard, from dist/web.
//
// dashboard.D1. Files whose names have their hash are kept by browsers for a year; every other file is checked with each visit.
// dashboard.D2. Every address of a page answers the same index.html: the page finds its content from the address. Only a request that
//   names text/html gets it, so that programs get the API, or the routes of federation, at the same addresses.
// dashboard.D3. Only names that are in the folder are read: an address cannot reach another file.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { hash } from "node:crypto";
import { sizedResponse, type HttpRoute } from "../http/index.ts";
import { securityHeaders, withHeaders } from "./auth/security-headers.ts";

export interface DashboardOptions {
  /** Without a slash at its end. */
  readonly basePath: string;
  /** Where the files are; default: those of the package. */
  readonly folder?: string;
  /** Whether browsers reach the server over TLS. */
  readonly isSecure: (url: URL) => boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

const NOT_BUILT = `The dashboard is not built, so there are only the API and the command line.

Build it:   npm run build
The API:    GET /openapi.json
The runs:   reprise list, reprise show <id>
`;

interface StaticFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
  readonly etag: string;
  readonly isHashed: boolean;
}

/** The folder of the built dashboard: the same from the sources and from the package. */
export function dashboardFolder(): string {
  const inPackage = fileURLToPath(new URL("../web/", import.meta.url));
  return existsSync(join(inPackage, "index.html"))
    ? inPackage
    : fileURLToPath(new URL("../../dist/web/", import.meta.url));
}

/** The routes of the files and of every page. */
export function dashboardRoutes({
  basePath,
  folder = dashboardFolder(),
  isSecure,
}: DashboardOptions): readonly HttpRoute[] {
  const files = new DashboardFiles(folder, basePath);
  const nameOf = (url: URL): string => url.pathname.slice(basePath.length + 1);
  const under = new RegExp(`^${RegExp.escape(basePath)}(?:/|$)`);
  const answer = (file: StaticFile, request: Request, url: URL): Response =>
    withHeaders(fileResponse(file, request), securityHeaders("dashboard", isSecure(url)));
  const admit = (): { name: string } => ({ name: "anonymous" });
  return [
    {
      method: "GET",
      path: under,
      serves: (_request, url) => nameOf(url) !== "index.html" && files.has(nameOf(url)),
      admit,
      handle: ({ request, url }) => answer(files.get(nameOf(url))!, request, url),
    },
    {
      method: "GET",
      path: under,
      serves: (request, url) => isPage(request, nameOf(url)),
      admit,
      handle: ({ request, url }) => answer(files.get("index.html") ?? NOT_BUILT_FILE, request, url),
    },
  ];
}

/** dashboard.D2. Addresses that are never pages keep their answers, also in a browser. */
function isPage(request: Request, name: string): boolean {
  if (/^(?:v1|a|errors|metrics|health|ready|scale|mcp|openapi\.json|llms\.txt)(?:\/|$)/.test(name)) return false;
  return request.headers.get("accept")?.toLowerCase().includes("text/html") === true;
}

class DashboardFiles {
  readonly #folder: string;
  readonly #basePath: string;
  readonly #files = new Map<string, StaticFile>();
  #names: ReadonlySet<string> | undefined;

  constructor(folder: string, basePath: string) {
    this.#folder = folder;
    this.#basePath = basePath;
  }

  has(name: string): boolean {
    // dashboard.D3
    if (this.#names === undefined || this.#names.size === 0) this.#names = namesIn(this.#folder);
    return this.#names.has(name);
  }

  get(name: string): StaticFile | undefined {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    if (!this.has(name)) return undefined;
    const file = this.#read(name);
    this.#files.set(name, file);
    return file;
  }

  #read(name: string): StaticFile {
    let bytes: Uint8Array<ArrayBuffer> = readFileSync(join(this.#folder, name));
    // The addresses of index.html are relative; those of a page deeper in the path need the base path.
    if (name === "index.html")
      bytes = new TextEncoder().encode(new TextDecoder().decode(bytes).replaceAll('"./', `"${this.#basePath}/`));
    return {
      bytes,
      type: TYPES[extname(name)] ?? "application/octet-stream",
      etag: `"${hash("sha256", bytes, "base64url").slice(0, 22)}"`,
      isHashed: /^assets\/.+-[\w-]{8,}\.\w+$/.test(name),
    };
  }
}

function namesIn(folder: string): ReadonlySet<string> {
  if (!existsSync(folder)) return new Set();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return new Set(files.map(({ parentPath, name }) => relative(folder, join(parentPath, name)).split(sep).join("/")));
}

/** dashboard.D1 */
function fileResponse({ bytes, type, etag, isHashed }: StaticFile, request: Request): Response {
  const headers = { etag, "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache" };
  if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers });
  return sizedResponse(bytes, { headers: { ...headers, "content-type": type } });
}

const NOT_BUILT_FILE: StaticFile = {
  bytes: new TextEncoder().encode(NOT_BUILT),
  type: "text/plain; charset=utf-8",
  etag: '"not-built"',
  isHashed: false,
};
