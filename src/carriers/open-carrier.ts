// Open carrier: the carrier that a URL names. Carriers with packages of their own are loaded when they are used.

import { RepriseError, withoutPassword } from "../base/index.ts";
import type { Carrier, CarrierOptions } from "./carrier.ts";
import { openDirectory } from "./directory.ts";
import { openHttp } from "./http.ts";

const EXAMPLES =
  'Write a folder ("/mnt/stick/history" or "file:///mnt/stick/history"), "https://host/path", "s3://bucket/prefix?region=eu-central-1" or "nats://host:4222/bucket".';

type CarrierScheme = "path" | "file" | "http" | "https" | "s3" | "nats" | "nats+tls";
const SCHEMES: ReadonlySet<string> = new Set<CarrierScheme>(["file", "http", "https", "s3", "nats", "nats+tls"]);

/** What the URL of a carrier begins with. Refuses what no carrier has. */
export function carrierScheme(url: string): CarrierScheme {
  if (isPath(url)) return "path";
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined) throw bad(url, "is neither a URL nor a path that begins with / or ./");
  if (!SCHEMES.has(scheme)) throw bad(url, `begins with "${scheme}:", and no carrier has this scheme`);
  if (!URL.canParse(url)) throw bad(url, "is not a URL");
  return scheme as CarrierScheme;
}

/** Opens the carrier that a URL, or the path of a folder, names. */
export async function openCarrier(url: string, options: CarrierOptions): Promise<Carrier> {
  switch (carrierScheme(url)) {
    case "path":
    case "file":
      return openDirectory(url, options);
    case "http":
    case "https":
      return openHttp(url, options);
    case "s3":
      return (await import("./s3.ts")).openS3(url, options);
    case "nats":
    case "nats+tls":
      return (await import("./nats.ts")).openNats(url, options);
  }
}

/** Drive letters of Windows too: no scheme has one letter. */
function isPath(url: string): boolean {
  return /^(?:\/|\.{1,2}(?:[/\\]|$)|[a-z]:[/\\])/i.test(url);
}

function bad(url: string, problem: string): RepriseError {
  const shown = withoutPassword(url).slice(0, 200);
  return new RepriseError("BAD_CARRIER_URL", `${JSON.stringify(shown)} ${problem}. ${EXAMPLES}`, {
    details: { url: shown },
  });
}
