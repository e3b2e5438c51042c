// Claim facts: what the first entry of a run and its end say.

import type { Entry } from "../kernel/index.ts";
import type { ClaimEnd } from "./bundled-run.ts";
import { itemTexts, memberTexts, type MemberTexts } from "./member-texts.ts";
import { numberIn, type MemberKeys } from "./steps.ts";

/** The fields of a claim besides its steps; those that are absent are undefined. */
export interface ClaimFacts {
  end: ClaimEnd;
  input?: string | undefined;
  output?: string | undefined;
  error?: string | undefined;
  next?: object;
  fork?: object;
}

/** The first entry of a run and its end. */
export class FactsReader {
  readonly #keys: MemberKeys;
  #facts: ClaimFacts = { end: "open" };
  output: string | undefined;

  constructor(keys: MemberKeys) {
    this.#keys = keys;
  }

  /** True for these entries. */
  add({ type }: Pick<Entry, "type">, members: MemberTexts): boolean {
    switch (type) {
      case "RunStarted":
        this.#facts.input = this.#key(members, "input");
        this.#addFork(members);
        return true;
      case "RunCompleted":
        this.#facts.end = "completed";
        this.output = members.get("output");
        this.#facts.output = this.#key(members, "output");
        return true;
      case "RunFailed":
        this.#facts.end = "failed";
        this.#facts.error = this.#key(members, "error");
        return true;
      case "RunCancelled":
        this.#facts.end = "cancelled";
        return true;
      case "RunContinued":
        this.#facts.end = "continued";
        this.#facts.next = withoutUndefined({
          given: this.#key(members, "given"),
          version: numberIn(members, "version"),
        });
        return true;
      default:
        return false;
    }
  }

  #key(members: MemberTexts, field: string): string | undefined {
    return this.#keys.of(members, field, "", field);
  }

  /** claim.C3 */
  #addFork(members: MemberTexts): void {
    const forked = members.get("forked");
    if (forked === undefined) return;
    const fork: Record<string, unknown> = { seed: this.#key(members, "seed") };
    const origin = memberTexts(forked);
    for (const [name, text] of origin)
      if (POSITIONS.has(name)) fork[name] = JSON.parse(text);
      else if (name === DELIVERED) fork[name] = this.#keys.ofText(deliveredText(text), "", name);
      else if (!OF_ORIGIN.has(name)) fork[name] = this.#key(origin, name);
    this.#facts.fork = withoutUndefined(fork);
  }

  read(): ClaimFacts {
    return this.#facts;
  }
}

/** The member of `forked` that has the messages which the origin had received. */
const DELIVERED = "told";

/** steps.E2. The messages without who sent them and why. */
function deliveredText(list: string): string {
  const messages = itemTexts(list).map((text) => {
    const message = [...memberTexts(text)].map(([name, value]) => [name, name === "data" ? sentText(value) : value]);
    return objectText(message as [string, string][]);
  });
  return `[${messages.join(",")}]`;
}

function sentText(data: string): string {
  return objectText([...memberTexts(data)].filter(([name]) => !["by", "reason", "stack"].includes(name)));
}

function objectText(members: readonly (readonly [name: string, text: string])[]): string {
  return `{${members.map(([name, text]) => `"${name}":${text}`).join(",")}}`;
}

/** Members of `forked` that say where the fork starts: names of the program, not values. */
const POSITIONS: ReadonlySet<string> = new Set(["step", "at"]);
/** Members of `forked` that identify the execution that the fork starts from. */
const OF_ORIGIN: ReadonlySet<string> = new Set(["run", "generation", "seq", "chain"]);

export function withoutUndefined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
