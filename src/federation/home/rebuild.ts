// Rebuild: drops everything that is derived and makes it again from logs and contents (home.H2).

import type { LogRecord } from "../log/record.ts";
import { want } from "./apply-records.ts";
import { hexOf } from "./blobs.ts";
import { hasFacts, indexFacts } from "./facts.ts";
import type { HomeDatabase, Row } from "./home-database.ts";
import type { HomeParts } from "./home-parts.ts";
import { hasRelations, indexRelations, relationsOf } from "./relations.ts";
import { State } from "./schema.ts";

const PAGE = 500;

export function rebuild(parts: HomeParts): void {
  const { db, log, origins, cells, erasure } = parts;
  const { shards } = parts.contents;
  for (const index of shards.indexes()) rebuildFacts(shards.at(index));
  db.transact(() => {
    for (const table of ["cell", "relation_end", "link_slot", "wanted"]) db.db.exec(`delete from ${table}`);
    // What is erased stays erased, whatever other origins put or grants say by now (erasure.E1).
    db.db.exec("delete from erased where done = 0");
    const bounds = log.visibleBounds();
    cells.putAll(cells.allAt(bounds));
    erasure.mark(cells.all(), () => bounds);
    for (const index of shards.indexes())
      for (const { key, type, bytes } of artifacts(shards.at(index), hasRelations))
        indexRelations(
          db,
          hexOf(key),
          relationsOf({ key: hexOf(key), type: String(type), bytes: bytes as Uint8Array }),
        );
    for (const { number, size } of origins.list()) {
      let page: LogRecord[] = [];
      for (const record of log.records(number, size)) {
        page.push(record);
        if (page.length < PAGE) continue;
        want(parts, number, page);
        page = [];
      }
      want(parts, number, page);
    }
  });
  erasure.finish();
}

function rebuildFacts(shard: HomeDatabase): void {
  shard.transact(() => {
    shard.db.exec("delete from fact; delete from tag");
    for (const { id, type, bytes } of artifacts(shard, hasFacts))
      indexFacts(shard, Number(id), String(type), bytes as Uint8Array);
  });
}

/** The contents of a shard whose bytes are here, by the page. */
function* artifacts(shard: HomeDatabase, fits: (type: string) => boolean): Generator<Row> {
  const types = shard.all("select distinct type from artifact").map(({ type }) => String(type));
  for (const type of types.filter(fits))
    for (let after = 0; ;) {
      const page = shard.all(
        `select id, key, type, bytes from artifact where type = ? and id > ? and state = ${State.present} order by id limit ${PAGE}`,
        type,
        after,
      );
      yield* page;
      if (page.length < PAGE) break;
      after = Number(page.at(-1)!["id"]);
    }
}
