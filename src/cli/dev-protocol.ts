// Dev protocol: what `reprise dev` and its worker process say to each other, and what both need to serve the dashboard.

import type { ServerOptions } from "../server/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { secretFileOf, tokenFileOf } from "./home.ts";
import type { LogLines } from "./log-lines.ts";
import { paint } from "./output.ts";

/** From the child to its parent: the files it has loaded; that it takes connections; why its file cannot be loaded. */
export interface DevMessage {
  readonly files?: readonly string[];
  readonly ready?: true;
  readonly failed?: string;
}
/** From the parent to its child, with a connection of the dashboard. */
export const CONNECTION = "connection";
/** Environment of the child: the port that its parent listens on; whether it prints the address. */
export const [PORT_VARIABLE, ANNOUNCE_VARIABLE] = ["REPRISE_DEV_PORT", "REPRISE_DEV_ANNOUNCE"] as const;
/** From the parent to its child. */
export const DRAIN = "drain";

/** Who may use the dashboard of `reprise dev`: a browser that used the one-time address, and tokens of the folder. */
export function devAccess(options: GlobalOptions): Pick<ServerOptions, "auth" | "secretFile"> {
  return { auth: { tokenFile: tokenFileOf(options), local: "session" }, secretFile: secretFileOf(options) };
}

/** In JSON, the output is a log: the address that signs a person in is not for it. */
export function announceDashboard(log: LogLines, url: string, signIn: string): void {
  log.event("dev.serving", `${paint("green", "dashboard")} ${signIn}`, { url });
}
