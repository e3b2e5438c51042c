// Relations: who stands in a relation with whom, as links, statements and claims say it. Derived from contents alone.
//
// relations.R1. A link relates its ends by its own type. A claim used its input, and generated its output or error. A statement says that
//   a run made a claim (`claimed`) and has a journal (`journaled`), and which run informed it (`informed`: its parent; `forked-from`: the run it was forked from).
// relations.R2. What one artifact says never changes. Whether it counts depends on the snapshot: see traverse.ts.

import { linkEnds, parseLink, slotOf, type LinkRole } from "../log/link.ts";
import type { Content } from "../log/content.ts";
import { hexOf, isKey, keyBlob } from "./blobs.ts";
import { CLAIM_TYPE, LINK_TYPE, MEMO_ANSWER_TYPE, STATEMENT_TYPE } from "./facts.ts";
import type { HomeDatabase } from "./home-database.ts";

/** One place in a relation: a key, `run:<id>` or `origin:<origin>`. */
export interface RelationEnd {
  readonly end: string;
  readonly type: string;
  readonly role: LinkRole;
}

/** A relation that an artifact says. */
export interface Relation {
  readonly type: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  /** The key of the link, the statement or the claim. */
  readonly by: string;
}

export function hasRelations(type: string): boolean {
  return type === LINK_TYPE || type === CLAIM_TYPE || type === STATEMENT_TYPE || type === MEMO_ANSWER_TYPE;
}

/** What an artifact says about others. */
export interface Relations {
  readonly ends: readonly RelationEnd[];
  /** Of a link. */
  readonly slot?: string;
}

const NONE: Relations = { ends: [] };

/** relations.R1. Refuses with LINK_INVALID a text that should be a link. */
export function relationsOf({ key, type, bytes }: Content): Relations {
  if (!hasRelations(type)) return NONE;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  if (type === LINK_TYPE) {
    const link = parseLink(text);
    return { ends: pair(link.type, link.from, link.to), slot: slotOf(link) };
  }
  const fields = fieldsOf(text);
  if (type === MEMO_ANSWER_TYPE) return { ends: ofMemoAnswer(fields) };
  return { ends: type === CLAIM_TYPE ? ofClaim(key, fields) : ofStatement((fields["predicate"] ?? {}) as Fields) };
}

function ofMemoAnswer({ memo }: Fields): RelationEnd[] {
  return isKeyText(memo) ? pair("answers", [], [`memo:${memo}`]) : [];
}

function ofClaim(key: string, { input, output, error }: Fields): RelationEnd[] {
  const generated = [output, error].filter(isKeyText);
  return [
    ...(isKeyText(input) ? pair("used", [input], [key]) : []),
    ...(generated.length > 0 ? pair("generated", [key], generated) : []),
  ];
}

function ofStatement({ run, claim, journal, parent, forked }: Fields): RelationEnd[] {
  if (typeof run !== "string") return [];
  const own = `run:${run}`;
  const { root } = (journal ?? {}) as Fields;
  return [
    ...(isKeyText(root) ? pair("journaled", [own], [root]) : []),
    ...(isKeyText(claim) ? pair("claimed", [own], [claim]) : []),
    ...informed("informed", parent, own),
    ...informed("forked-from", forked, own),
  ];
}

function informed(type: string, other: unknown, own: string): RelationEnd[] {
  const { run } = (other ?? {}) as Fields;
  return typeof run === "string" && `run:${run}` !== own ? pair(type, [`run:${run}`], [own]) : [];
}

/** An end that is on both sides counts once. */
function pair(type: string, from: readonly string[], to: readonly string[]): RelationEnd[] {
  return [...linkEnds({ from, to })].map(([end, role]) => ({ end, type, role }));
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

function isKeyText(value: unknown): value is string {
  return typeof value === "string" && isKey(value);
}

export function indexRelations(db: HomeDatabase, key: string, { ends, slot }: Relations): void {
  if (ends.length === 0) return;
  const insert = db.sql("insert or ignore into relation_end (end, artifact, type, role) values (?, ?, ?, ?)");
  const blob = keyBlob(key);
  for (const { end, type, role } of ends) insert.run(end, blob, type, role);
  if (slot !== undefined) db.run("insert or ignore into link_slot (link, slot) values (?, ?)", blob, keyBlob(slot));
}

export function dropRelations(db: HomeDatabase, key: string): void {
  db.run("delete from relation_end where artifact = ?", keyBlob(key));
  db.run("delete from link_slot where link = ?", keyBlob(key));
}

/** The artifacts that name an end, on this side of a relation. */
export function relationsWith(
  db: HomeDatabase,
  end: string,
  side: "from" | "to",
): { readonly by: string; readonly type: string }[] {
  return db
    .all("select artifact, type from relation_end where end = ? and role in (?, 'both')", end, side)
    .map(({ artifact, type }) => ({ by: hexOf(artifact), type: String(type) }));
}

/** The whole relation of a type that an artifact says. */
export function relationBy(db: HomeDatabase, by: string, type: string): Relation {
  const rows = db.all(
    "select end, role from relation_end where artifact = ? and type = ? order by end",
    keyBlob(by),
    type,
  );
  const side = (name: string): string[] =>
    rows.filter(({ role }) => role === name || role === "both").map(({ end }) => String(end));
  return { type, from: side("from"), to: side("to"), by };
}
