// Schema: the tables of a home.
//
// `federation.db` has what the site knows: `origin` has a row per log, `log` its records, `checkpoint` the signed notes. `cell`,
// `relation_end`, `link_slot` and `wanted` are derived from them. `erased` is what this site has erased. `applied` is the history of what came in. Each shard has contents by their
// keys, and what is derived from contents alone: `fact` and `tag`.
//
// In `log`, records after the size of their origin are not visible: they wait for the rest of their checkpoint, or are quarantined.
// Keys, slots and roots are blobs of 32 bytes; a cell is a letter and such a blob, so that the order of blobs is that of the texts.

import type { Schema } from "./home-database.ts";

const MAIN = `
create table meta (key text primary key, value text not null) strict, without rowid;

create table origin (
  number integer primary key,
  id text not null unique,
  vkey text not null,
  peer text,
  own integer not null default 0,
  grants text not null default '[]',
  admitted_at integer not null,
  -- What is visible: the number of records, c of the last one, the root and the peaks of their tree.
  size integer not null default 0,
  clock integer not null default 0,
  root text not null,
  peaks text not null,
  -- What is stored: more than is visible while the rest of a checkpoint is missing.
  cursor integer not null default 0,
  cursor_clock integer not null default 0,
  cursor_peaks text not null,
  status text not null default 'active'
) strict;

create table origin_key (
  origin integer not null, n integer not null, vkey text not null,
  primary key (origin, n)
) strict, without rowid;

create table checkpoint (
  origin integer not null, size integer not null, root text not null, note text not null, at integer not null,
  primary key (origin, size)
) strict, without rowid;

create table log (
  origin integer not null, n integer not null, c integer not null, op integer not null,
  cell blob, key blob, names integer not null, rec text not null,
  primary key (origin, n)
) strict, without rowid;
create index log_by_cell on log (cell, origin, n) where cell is not null;
create index log_naming on log (origin, n) where names = 1;

create table cell (
  id blob primary key,
  add_c integer, add_id blob, add_o integer,
  tomb_c integer, tomb_o integer,
  erased integer not null
) strict, without rowid;

-- Which artifact says that \`end\` stands in a relation: a link, a statement or a claim.
create table relation_end (
  end text not null, artifact blob not null, type text not null, role text not null,
  primary key (end, artifact, type)
) strict, without rowid;
create index relation_of_artifact on relation_end (artifact);
create table link_slot (link blob primary key, slot blob not null) strict, without rowid;

create table wanted (
  origin integer not null, n integer not null, key blob not null,
  primary key (origin, n)
) strict, without rowid;
create index wanted_by_key on wanted (key);

-- done = 0: the bytes must still be removed from their shard.
create table erased (key blob primary key, done integer not null) strict, without rowid;
create index erased_to_do on erased (key) where done = 0;

create table snapshot (id text primary key, heads text not null, closed integer not null, at integer not null) strict, without rowid;

create table applied (
  seq integer primary key,
  origin integer not null, n integer not null, root text not null,
  peer text, snapshot text not null, at integer not null
) strict;
create index applied_by_origin on applied (origin, seq);
create index applied_by_peer on applied (peer, origin, seq);
create index applied_by_snapshot on applied (snapshot);

create table conflict (
  id integer primary key,
  kind text not null, cell text not null, evidence text not null, digest text not null unique, peer text,
  first_seen integer not null, last_seen integer not null, times integer not null,
  state text not null, resolution text
) strict;
create index conflict_by_cell on conflict (cell, state);

create table pin (what text not null, name text not null, at integer not null, primary key (what, name)) strict, without rowid;
create table peer (name text primary key, value text not null) strict, without rowid;
create table counter (name text primary key, value integer not null) strict, without rowid;
`;

const SHARD = `
create table meta (key text primary key, value text not null) strict, without rowid;

create table artifact (
  id integer primary key,
  key blob not null unique,
  type text not null, size integer not null, state integer not null, at integer not null,
  bytes blob
) strict;
create index artifact_by_type on artifact (type);

create table journal (
  id integer primary key,
  root blob not null unique,
  entries integer not null, form text not null, size integer not null, sum blob not null, state integer not null, at integer not null,
  bytes blob
) strict;

-- By the id of the artifact, so that rows are appended.
create table fact (
  id integer primary key,
  kind text not null, run text not null, generation integer not null, chain text not null,
  definition text, version integer, status text, created_at integer, ended_at integer
) strict;
create index fact_by_definition on fact (definition, ended_at) where definition is not null;
create index fact_by_run on fact (run, generation);

create table tag (tag text not null, id integer not null, primary key (tag, id)) strict, without rowid;
create index tag_by_artifact on tag (id);
`;

/** "Repf" in the header of federation.db. */
export const MAIN_SCHEMA: Schema = { applicationId: 0x52657066, migrations: [MAIN] };
/** "Reps" in the header of a shard. */
export const SHARD_SCHEMA: Schema = { applicationId: 0x52657073, migrations: [SHARD] };

/** The numbers in `log.op`. */
export const OPS = ["put", "tomb", "erase", "key"] as const;

/** `artifact.state` and `journal.state`. */
export const State = { present: 0, evicted: 1, erased: 2 } as const;
