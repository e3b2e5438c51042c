// Approval page: what the page of an approval link says. HTML without scripts, whose values are text.
//
// approval-page.P1. Every value of a run is escaped: payloads are never HTML, links or images, so a preview or a mail client loads nothing.
// approval-page.P2. The page has no address but its own: a click on it goes to this server.

import { formatMs, type EpochMs } from "../../base/index.ts";
import { shownText } from "../../contract/index.ts";
import { payloadToWire } from "../wire-payload.ts";
import type { LinkGrant } from "./approval-link.ts";
import type { PromiseState } from "./find-promise.ts";
import { escapeHtml, pageOf } from "./page-style.ts";

const MAX_SHOWN = 20_000;

export interface PageFacts {
  readonly grant: LinkGrant;
  readonly definition: string;
  readonly now: EpochMs;
}

type Open = Extract<PromiseState, { state: "open" }>;
type Settled = Extract<PromiseState, { state: "settled" }>;

/** The page with the two buttons. `problem`: why the last answer was refused. */
export function openPage(
  { grant, definition, now }: PageFacts,
  { show, since, deadline }: Open,
  problem?: string,
): string {
  const until = Math.min(grant.x, deadline ?? Number.POSITIVE_INFINITY);
  return pageOf(
    "Decision",
    `<div class="card">
<section class="stack"><h2>${escapeHtml(definition)} asks for a decision</h2>${shown(show)}</section>
<section><dl>
<dt>Run</dt><dd class="mono">${escapeHtml(grant.r)}</dd>
<dt>Decision</dt><dd class="mono">${escapeHtml(grant.k === undefined ? grant.p : `${grant.p} · ${grant.k}`)}</dd>
<dt>Open since</dt><dd>${timeOf(since)}, for ${escapeHtml(formatMs(Math.max(0, now - since)))}</dd>
<dt>Answer until</dt><dd>${timeOf(until)}, ${escapeHtml(formatMs(Math.max(0, until - now)))} left</dd>
</dl></section>
<section><form method="post" action="" autocomplete="off">
${problem === undefined ? "" : `<p class="error" role="alert">${escapeHtml(problem)}</p>`}
<label for="reason">Reason (optional), kept with the answer</label>
<textarea id="reason" name="reason" maxlength="1000"></textarea>
<div class="acts"><button class="primary" name="decision" value="approve">Approve</button><button name="decision" value="reject">Reject</button></div>
</form></section>
<section class="muted">You answer as ${escapeHtml(grant.n)}. The link works once.</section>
</div>`,
  );
}

/** The page after the promise has an answer. `isOwn`: this request answered it. */
export function settledPage({ grant, definition }: PageFacts, settled: Settled, isOwn: boolean): string {
  const { how, by, reason, at } = settled;
  const [tone, word] = verdictOf(settled);
  const who = how === "timed_out" ? "No answer came in time" : `${word} by ${by ?? "a caller without a name"}`;
  return pageOf(
    word,
    `<div class="card">
<section class="stack"><span class="verdict ${tone}">${glyphOf(tone)}${escapeHtml(word)}</span>
<h1>${isOwn ? "Your answer was recorded" : escapeHtml(who)}</h1>
${isOwn ? "" : `<p class="soft">This link answers once, and the decision has its answer.</p>`}</section>
<section><dl>
<dt>Run</dt><dd class="mono">${escapeHtml(grant.r)}</dd>
<dt>Definition</dt><dd>${escapeHtml(definition)}</dd>
${by === undefined ? "" : `<dt>By</dt><dd>${escapeHtml(by)}</dd>`}
${at === undefined ? "" : `<dt>At</dt><dd>${timeOf(at)}</dd>`}
${reason === undefined || reason === "" ? "" : `<dt>Reason</dt><dd>${escapeHtml(reason)}</dd>`}
</dl></section></div>`,
  );
}

/** A page that only says why there is nothing to answer. */
export function closedPage(title: string, text: string): string {
  return pageOf(
    title,
    `<div class="card"><section class="stack"><span class="verdict off">${glyphOf("off")}${escapeHtml(title)}</span><p>${escapeHtml(text)}</p></section></div>`,
  );
}

function verdictOf({ how, value }: Settled): readonly ["yes" | "no" | "off", string] {
  if (how === "timed_out") return ["off", "Timed out"];
  if (how === "rejected" || isRefusal(value)) return ["no", "Rejected"];
  return isApproval(value) ? ["yes", "Approved"] : ["yes", "Answered"];
}

function isRefusal(value: unknown): boolean {
  return value === false || decisionOf(value) === false;
}

function isApproval(value: unknown): boolean {
  return value === true || decisionOf(value) === true;
}

function decisionOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const { ok, approved } = value as { readonly ok?: unknown; readonly approved?: unknown };
  return ok ?? approved;
}

/** approval-page.P1. A text is the question, and so is the title of an object, whose other fields are a list; anything else is JSON. */
function shown(show: unknown): string {
  if (show === undefined || show === null) return "<h1>Approve?</h1>";
  if (typeof show === "string") {
    const [question = "", ...rest] = cut(show).split("\n");
    const more = rest.join("\n").trim();
    return `<h1>${escapeHtml(question)}</h1>${more === "" ? "" : `<p class="text">${escapeHtml(more)}</p>`}`;
  }
  const value = payloadToWire(show, "plain");
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const { title = "Approve?", why, rest } = shownText(value as Readonly<Record<string, unknown>>);
    const head = `<h1>${escapeHtml(cut(title))}</h1>${why === undefined ? "" : `<p class="text">${escapeHtml(cut(why))}</p>`}`;
    if (rest.length === 0) return head;
    if (rest.length > 30 || rest.some(([, one]) => typeof one === "object" && one !== null))
      return head + jsonOf(Object.fromEntries(rest));
    return `${head}<dl>${rest
      .map(([name, one]) => `<dt>${escapeHtml(cut(name))}</dt><dd>${escapeHtml(cut(String(one)))}</dd>`)
      .join("")}</dl>`;
  }
  return `<h1>Approve?</h1>${jsonOf(value)}`;
}

function jsonOf(value: unknown): string {
  return `<pre tabindex="0" aria-label="What is to be decided">${escapeHtml(cut(JSON.stringify(value, undefined, 2)))}</pre>`;
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)` : text;
}

/** The server does not know the time zone of the person. */
function timeOf(at: EpochMs): string {
  const iso = new Date(at).toISOString();
  return `<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

function glyphOf(tone: "yes" | "no" | "off"): string {
  const inside = {
    yes: '<path d="m3 7.5 2.700 2.700 5.300-6"/>',
    no: '<path d="m4 4 6 6m0-6-6 6"/>',
    off: '<path d="M3.500 7h7"/>',
  }[tone];
  return `<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${inside}</svg>`;
}
