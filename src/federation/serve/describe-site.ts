// Describe site: what `GET /` says, and the list of logs.
//
// describe-site.D1. Without a token it says only that a site is here. A peer gets the logs that it may read, with the vkeys to check them,
//   the labels of tasks that this site offers work for, and the limits.

import { ENGINE_NAME } from "../../base/index.ts";
import { mayRead } from "./peer-access.ts";
import type { Call, Route } from "./route.ts";
import type { ServeHome } from "./serve-home.ts";
import type { ServeLimits } from "./serve-limits.ts";

export interface SiteOptions {
  readonly home: ServeHome;
  readonly limits: ServeLimits;
  readonly labels: () => readonly string[];
  readonly isPublic: boolean;
}

/** What a peer learns about a site. */
export interface SiteDescription {
  readonly reprise: "federation/1";
  readonly engine: string;
  readonly origins?: readonly { readonly origin: string; readonly vkey: string; readonly size: number }[];
  readonly labels?: readonly string[];
  readonly limits?: ServeLimits;
}

export function siteRoutes(options: SiteOptions): readonly Route[] {
  return [{ method: "GET", path: /^\/$/, access: "anyone", handle: (call) => describeSite(call, options) }];
}

/** describe-site.D1 */
function describeSite(call: Call, options: SiteOptions): Response {
  const prefix = call.url.searchParams.get("list");
  const isKnown = call.peer !== undefined || options.isPublic;
  if (prefix !== null && isKnown) return listFiles(call, prefix, options);
  const site: SiteDescription = {
    reprise: "federation/1",
    engine: ENGINE_NAME,
    ...(isKnown && {
      origins: readableOrigins(call, options),
      labels: options.labels(),
      limits: options.limits,
    }),
  };
  return Response.json(site, { headers: { "cache-control": "no-store" } });
}

function readableOrigins({ peer }: Call, { home, isPublic }: SiteOptions): NonNullable<SiteDescription["origins"]> {
  return home
    .origins()
    .filter(({ id }) => mayRead(peer, id, isPublic))
    .map(({ id, vkey, size }) => ({ origin: id, vkey, size }));
}

const FOLDERS = ["artifact/", "journal/", "key/", "pack/", "tile/"];

/** The direct children of a folder down to the files of a log. Files below that are found by their numbers and keys, not by a list. */
function listFiles(call: Call, prefix: string, options: SiteOptions): Response {
  if (call.url.searchParams.get("shallow") !== "1") return new Response(null, { status: 501 });
  const children = new Set<string>();
  for (const { origin, size } of readableOrigins(call, options)) {
    const files = size === 0 ? [] : ["checkpoint", ...FOLDERS];
    for (const path of files.map((name) => `${origin}/${name}`)) {
      if (!path.startsWith(prefix)) continue;
      const end = path.indexOf("/", prefix.length);
      children.add(end === -1 ? path : path.slice(0, end + 1));
    }
  }
  return new Response([...children].map((path) => `${path}\n`).join(""), {
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
  });
}
