// Publish: which peer may have which contents. Every peer may have the whole log; contents need a rule.
//
// publish.P1. Nothing is published by default. The first rule that fits the reader and the run decides; `none` ends the search.
// publish.P2. A rule speaks of the runs of this site. It speaks of runs that this site relays only if it names their origins.
// publish.P3. What a run publishes hangs together: its statement, its claim, its run record and its journal. A reader has all of them or
//   none. `hash-only` gives the leaf of each entry in place of its data.
// publish.P4. A statement of a store with a codec is blind, and so is what goes with it: `full` gives the blind contents as well
//   (docs/decisions/0139). A relay gives on what it has: it can leave the data out, and cannot add it.
// publish.P5. A content that belongs to no run, such as a link, is published by a rule for all runs with full payloads.
// publish.P6. The result of a pure step is published with its run, to readers that may have its payloads.
// publish.P7. Keys are known to every reader of a log, so any site can put those of another one into its own log. A log that this site
//   relays gives only what its own site says to have made, and of what several logs name no more than the rules for each of them give.

import { mediaType } from "../../base/index.ts";
import { CLAIM_TYPE, RUN_TYPE, STATEMENT_TYPE } from "../home/facts.ts";
import type { Home } from "../home/home.ts";
import { readMemoAnswer, type MemoAnswer } from "../work/memo-answer.ts";
import type { Content } from "../log/content.ts";
import { findOriginParts, firstEpoch, type Origin } from "../log/origin.ts";
import { leafLinesOf } from "./journal-file.ts";

export type Payloads = "full" | "hash-only" | "none";

/** A rule of publication, with its defaults filled in or not. */
export interface PublicationRule {
  /** Names of readers; `"*"` is every reader. */
  readonly to: readonly string[];
  /** Globs. Absent: all. */
  readonly definitions?: readonly string[];
  /** Globs; a run needs one of these. Absent or empty: all. */
  readonly tags?: readonly string[];
  /** publish.P2. Globs of origins whose runs are relayed. Absent: the runs of this site. */
  readonly origins?: readonly string[];
  readonly payloads: Payloads;
}

/** What rules look at. */
export interface PublishedRun {
  /** Undefined: a run of this site. */
  readonly origin?: Origin;
  readonly definition: string;
  readonly tags: readonly string[];
}

/** publish.P1 */
export function payloadsFor(rules: readonly PublicationRule[], reader: string, run: PublishedRun): Payloads {
  const rule = rules.find((one) => fitsReader(one, reader) && fitsOrigin(one, run.origin) && fitsRun(one, run));
  return rule?.payloads ?? "none";
}

/** publish.P5 */
function fitsEverything(rule: PublicationRule, reader: string, origin: Origin | undefined): boolean {
  const forAll = fitsAny(rule.definitions ?? ["*"], "") && (rule.tags ?? []).length === 0;
  return forAll && fitsReader(rule, reader) && fitsOrigin(rule, origin);
}

function fitsReader({ to }: PublicationRule, reader: string): boolean {
  return to.includes("*") || to.includes(reader);
}

function fitsOrigin({ origins = [] }: PublicationRule, origin: Origin | undefined): boolean {
  return origins.length === 0 ? origin === undefined : origin !== undefined && fitsAny(origins, origin);
}

function fitsRun({ definitions = ["*"], tags = [] }: PublicationRule, run: PublishedRun): boolean {
  return fitsAny(definitions, run.definition) && (tags.length === 0 || run.tags.some((tag) => fitsAny(tags, tag)));
}

export function fitsAny(globs: readonly string[], text: string): boolean {
  return globs.some((glob) => fits(glob, text));
}

/** `*` stands for any characters. Linear in both: a rule must not be able to stop a sync. */
function fits(glob: string, text: string): boolean {
  const [head = "", ...parts] = glob.split("*");
  if (parts.length === 0) return head === text;
  const tail = parts.pop()!;
  if (!text.startsWith(head) || !text.endsWith(tail) || text.length < head.length + tail.length) return false;
  const end = text.length - tail.length;
  let at = head.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** What a statement says that readers of a home need. */
export interface StatementFacts {
  readonly run: string;
  readonly generation: number;
  readonly chain: string;
  readonly claim: string;
  readonly journal: { readonly root: string; readonly size: number };
  readonly tags: readonly string[];
  readonly origin: Origin;
}

/** The facts of a content that is a statement; undefined: it is none. */
export function statementFacts({ type, bytes }: Content): StatementFacts | undefined {
  if (type !== STATEMENT_TYPE) return undefined;
  const { predicate } = fieldsOf(bytes);
  if (typeof predicate !== "object" || predicate === null) return undefined;
  const { run, generation, chain, claim, journal, tags = [], origin } = predicate as Partial<StatementFacts>;
  const { root, size } = (journal ?? {}) as Partial<StatementFacts["journal"]>;
  if (typeof run !== "string" || typeof generation !== "number" || typeof chain !== "string") return undefined;
  if (typeof claim !== "string" || typeof root !== "string" || typeof size !== "number") return undefined;
  if (typeof origin !== "string" || !Array.isArray(tags)) return undefined;
  return { run, generation, chain, claim, journal: { root, size }, tags, origin };
}

function fieldsOf(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(Buffer.from(bytes).toString("utf8"))) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

const RANK: Readonly<Record<Payloads, number>> = { none: 0, "hash-only": 1, full: 2 };

/** Whether two origins are epochs of one site; one of them may be any text. */
function isOfSite(text: string, origin: Origin): boolean {
  return findOriginParts(text) !== undefined && firstEpoch(text) === firstEpoch(origin);
}

/** Contents that every reader of the log may have: why a log continues in another epoch. */
export const EVIDENCE_TYPE = mediaType("evidence");

/** The rules of a site, asked for one reader. */
export class Publication {
  readonly #home: Home;
  readonly #rules: readonly PublicationRule[];
  readonly #own: Origin | undefined;
  readonly reader: string;

  /** `own`: the first epoch of this site's origin. */
  constructor(home: Home, rules: readonly PublicationRule[], own: Origin | undefined, reader: string) {
    this.#home = home;
    this.#rules = rules;
    this.#own = own;
    this.reader = reader;
  }

  /** publish.P3. What records of an origin with these keys give the reader, in their order; large contents included. */
  contentsOf(origin: Origin, keys: readonly string[]): Content[] {
    return keys.flatMap((key) => {
      const content = this.#home.content(key);
      if (content === undefined || content.type === RUN_TYPE) return [];
      const answer = readMemoAnswer(content);
      if (answer !== undefined) return this.#mayHaveAnswer(origin, answer) ? [content] : [];
      const facts = statementFacts(content);
      if (facts === undefined) return this.#mayHaveOther(origin, content) ? [content] : [];
      if (this.payloadsOf(origin, facts) === "none") return [];
      const claim = this.#claimOf(facts);
      return [content, ...(claim === undefined ? [] : [claim]), ...this.#runRecordsOf(facts)];
    });
  }

  /** publish.P6 */
  #mayHaveAnswer(origin: Origin, answer: Pick<MemoAnswer, "origin" | "definition" | "tags">): boolean {
    const { definition, tags } = answer;
    if (!this.#isMadeBy(origin, answer.origin)) return false;
    return payloadsFor(this.#rules, this.reader, { ...this.#scopeOf(origin), definition, tags }) === "full";
  }

  /** What the reader may have of the run of a statement. */
  payloadsOf(origin: Origin, facts: StatementFacts): Payloads {
    const definition = this.#definitionOf(facts);
    // publish.P7
    if (definition === undefined || !this.#isMadeBy(origin, facts.origin)) return "none";
    return payloadsFor(this.#rules, this.reader, { ...this.#scopeOf(origin), definition, tags: facts.tags });
  }

  /** The journal of a statement's run, as the reader may have it; undefined: it may not, or this home does not have it. */
  journalOf(origin: Origin, facts: StatementFacts): Uint8Array | undefined {
    const payloads = this.#journalPayloads(origin, facts);
    const journal = payloads === "none" ? undefined : this.#home.journal(facts.journal.root);
    return journal === undefined || payloads === "full" ? journal : leafLinesOf(journal);
  }

  /** publish.P7. The least that a statement which names the journal gives; of a journal of this site its own statement decides. */
  #journalPayloads(origin: Origin, facts: StatementFacts): Payloads {
    const payloads = this.payloadsOf(origin, facts);
    if (payloads === "none" || this.#isOwn(origin)) return payloads;
    const others = this.#home.saying(facts.journal.root, "journaled").flatMap(({ key, origins }) => {
      const content = this.#home.content(key);
      const said = content && statementFacts(content);
      if (said === undefined) return [];
      return origins.filter((one) => isOfSite(said.origin, one)).map((one) => this.payloadsOf(one, said));
    });
    return [payloads, ...others].reduce((least, one) => (RANK[one] < RANK[least] ? one : least));
  }

  #mayHaveOther(origin: Origin, content: Content): boolean {
    if (content.type === EVIDENCE_TYPE) return true;
    // publish.P7
    const origins = this.#isOwn(origin) ? [origin] : this.#home.originsOf(content);
    return origins.length > 0 && origins.every((one) => this.#givesEverything(one));
  }

  #givesEverything(origin: Origin): boolean {
    const { origin: named } = this.#scopeOf(origin);
    return this.#rules.find((rule) => fitsEverything(rule, this.reader, named))?.payloads === "full";
  }

  /** publish.P7. What a relayed log names was made by its site; this one vouches for its own log. */
  #isMadeBy(origin: Origin, maker: string): boolean {
    return this.#isOwn(origin) || isOfSite(maker, origin);
  }

  #isOwn(origin: Origin): boolean {
    return this.#own !== undefined && isOfSite(origin, this.#own);
  }

  /** publish.P2 */
  #scopeOf(origin: Origin): Pick<PublishedRun, "origin"> {
    return this.#isOwn(origin) ? {} : { origin };
  }

  /** A statement of another site may name any key as its claim. */
  #claimOf({ claim }: StatementFacts): Content | undefined {
    const content = this.#home.content(claim);
    return content?.type === CLAIM_TYPE ? content : undefined;
  }

  #definitionOf(facts: StatementFacts): string | undefined {
    const content = this.#claimOf(facts);
    const name = content === undefined ? undefined : fieldsOf(content.bytes)["name"];
    return typeof name === "string" ? name : undefined;
  }

  #runRecordsOf({ run, generation, chain }: StatementFacts): Content[] {
    return this.#home.runRecords(run, generation, chain).flatMap((key) => this.#home.content(key) ?? []);
  }
}
