// Steps: what a run did, without when, where and how often: a record per command, of the entries that count.
//
// steps.E1. A record holds keys of values, never values. Its text is canonical JSON, so equal steps have equal bytes.
// steps.E2. Left out is what differs between two executions of the same program: indexes, attempts, delays, earlier failures,
//   stacks, epochs, policies, ids of runs, checkpoint keys, who settled a promise and why.
// steps.E3. The order of the records follows from the program, not from the journal (`StepPlace`).
//
// docs/reference/claims.md has the table of all kinds.

import { RepriseError } from "../base/index.ts";
import type { PlainEntry } from "./journal-tree.ts";
import type { KeyOf } from "./blind.ts";
import type { MemberTexts } from "./member-texts.ts";

export type StepKind =
  | "task"
  | "operation"
  | "child"
  | "child-signal"
  | "child-cancel"
  | "timer"
  | "promise"
  | "settle"
  | "state"
  | "message"
  | "signal"
  | "update"
  | "patch"
  | "cancel"
  | "node"
  | "step";

/** steps.E1. `in`, `out`, `error`, `kept` and `skipped` are keys. */
export interface StepRecord {
  readonly command: string;
  readonly kind: StepKind;
  readonly name?: string | undefined;
  readonly in?: string | undefined;
  readonly out?: string | undefined;
  readonly error?: string | undefined;
  readonly kept?: string | undefined;
  readonly skipped?: string | undefined;
  readonly end?: string | undefined;
}

/** The canonical text of a record. */
export function stepText({ command, end, error, in: input, kept, kind, name, out, skipped }: StepRecord): string {
  let text = `{"command":${JSON.stringify(command)}`;
  if (end !== undefined) text += `,"end":${JSON.stringify(end)}`;
  if (error !== undefined) text += `,"error":"${error}"`;
  if (input !== undefined) text += `,"in":"${input}"`;
  if (kept !== undefined) text += `,"kept":"${kept}"`;
  text += `,"kind":"${kind}"`;
  if (name !== undefined) text += `,"name":${JSON.stringify(name)}`;
  if (out !== undefined) text += `,"out":"${out}"`;
  if (skipped !== undefined) text += `,"skipped":"${skipped}"`;
  return `${text}}`;
}

/**
 * steps.E3. The place of a record: compared number by number. A workflow has the index of the command; a graph the step, the position
 * of the item and the index; a flow the node, by name, and the item. `LAST` is greater than all of them.
 */
export type StepPlace = readonly [first: number, second: number, third: number];

export const LAST = 0xffff_ffff;

/** The place of a record without an index, in journal order. */
export function lastPlace(ordinal: number): StepPlace {
  return [LAST, ordinal, 0];
}

export type EmitStep = (record: StepRecord, place: StepPlace) => void;

/** Takes the entries of a run that count, in order, and emits a record for each command. */
export interface StepReader {
  /** False: such an entry is of no record. */
  add(entry: PlainEntry, members: MemberTexts): boolean;
  /** Emits the records of commands that have not ended. */
  finish(): void;
  /** The order of the first numbers of places; undefined: they are in order themselves. */
  ranks?(): readonly number[];
}

/** The keys of the members of entries, for one command. */
export class MemberKeys {
  readonly #keyOf: KeyOf;

  constructor(keyOf: KeyOf) {
    this.#keyOf = keyOf;
  }

  /** The key of a member; `field` names it in the record. Undefined if the entry does not have it. */
  of(members: MemberTexts, member: string, command: string, field: string): string | undefined {
    const text = members.get(member);
    return text === undefined ? undefined : this.#keyOf(command, field, text);
  }

  ofText(text: string, command: string, field: string): string {
    return this.#keyOf(command, field, text);
  }
}

/** The index of the command that an entry records. */
export function indexIn(members: MemberTexts): number {
  const index = numberIn(members, "index");
  if (index === undefined || !Number.isSafeInteger(index) || index < 0 || index >= LAST)
    throw new RepriseError(
      "STORE_CORRUPT",
      `Expected the index of a command in its entry, got ${index ?? "none"}. Run \`reprise doctor\`.`,
    );
  return index;
}

/** A member that is a text. */
export function stringIn(members: MemberTexts, member: string): string | undefined {
  const text = members.get(member);
  return text === undefined ? undefined : parsed(text, "string", member);
}

/** A member that is a number. */
export function numberIn(members: MemberTexts, member: string): number | undefined {
  const text = members.get(member);
  return text === undefined ? undefined : parsed(text, "number", member);
}

function parsed<T extends "string" | "number">(
  text: string,
  type: T,
  member: string,
): T extends "string" ? string : number {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== type)
    throw new RepriseError(
      "STORE_CORRUPT",
      `Expected a ${type} as \`${member}\` of an entry, got ${text.slice(0, 60)}. Run \`reprise doctor\`.`,
    );
  return value as T extends "string" ? string : number;
}
