// reprise why and uses with --sites: over the runs and links that all sites have published, at a snapshot.

import { EXIT } from "./exit-codes.ts";
import { withFederation } from "./open-federation.ts";
import { print, printJson, remark } from "./output.ts";
import type { ProvenanceOptions } from "./provenance.ts";
import { Table } from "./table.ts";

const SHOWN_DIGITS = 12;

export function traceSites(what: "why" | "uses", key: string, options: ProvenanceOptions): Promise<number> {
  const { depth, limit, snapshot } = options;
  return withFederation(options, { store: "optional" }, async (site) => {
    const { relations, isCut } = await site.trace(what, key, {
      limit,
      ...(depth !== undefined && { depth }),
      ...(snapshot !== undefined && { snapshot }),
    });
    if (options.json) for (const relation of relations) await printJson(relation);
    else if (relations.length > 0) {
      const table = new Table([
        { title: "DEPTH", right: true },
        { title: "RELATION" },
        { title: "FROM" },
        { title: "TO" },
        { title: "SITE", minWidth: SHOWN_DIGITS },
      ]);
      const rows = relations.map(({ depth: at, type, from, to, origin }) => [
        String(at),
        type,
        short(from),
        short(to),
        origin,
      ]);
      for (const line of table.render(rows)) await print(line);
    }
    if (relations.length === 0) remark("No site has published anything about it.");
    if (isCut) remark(`${relations.length} are shown; --limit and --depth show more.`);
    return relations.length === 0 ? EXIT.problem : EXIT.ok;
  });
}

function short(ends: readonly string[]): string {
  return ends.map((end) => (/^[0-9a-f]{64}$/.test(end) ? end.slice(0, SHOWN_DIGITS) : end)).join(", ");
}
