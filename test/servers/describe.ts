// Describe: tests that need a server, which may not be installed.

import { describe } from "vitest";
import { findGalera, isCi } from "../../scripts/servers.mjs";
import { whyNoHaProxy } from "./haproxy.ts";
import { whyNoNats } from "./nats.ts";
import { whyNoPgBouncer } from "./pgbouncer.ts";
import { whyNot, type ServerKind } from "./kinds.ts";

/**
 * A `describe` for tests that need a server of this kind. On a machine without one they are skipped, with
 * the reason in the name. In CI they fail instead, with the reason as their error.
 */
export function describeOn(
  kind: ServerKind | "pgbouncer" | "haproxy" | "galera" | "nats",
  title: string,
  tests: () => void,
): void {
  const obstacle = isCi() ? undefined : whyNotOn(kind);
  describe.skipIf(obstacle !== undefined)(obstacle === undefined ? title : `${title} (${obstacle})`, tests);
}

function whyNotOn(kind: Parameters<typeof describeOn>[0]): string | undefined {
  if (kind === "haproxy") return whyNoHaProxy();
  if (kind === "nats") return whyNoNats();
  if (kind === "pgbouncer") return whyNoPgBouncer();
  if (kind !== "galera") return whyNot(kind);
  return whyNot("mysql") ?? (findGalera() === undefined ? "Galera is not installed" : undefined);
}
