// Approval links: making them, their page, and the one answer that they give.
//
// approval-links.R1. GET changes nothing: mail programs, previews and prefetching browsers open links without a person.
// approval-links.R2. POST answers the promise only while it is open; the promise keeps its first answer. Every later request of the link
//   gets 410 with who answered, when and how, the person who answered included.
// approval-links.R3. The token in the path is the secret, so no cookie and no header counts here, and a form of another page that does not
//   know the token can do nothing.

import { isErrorCode, RepriseError } from "../../base/index.ts";
import type { approvalLinkOperations } from "../../contract/index.ts";
import { runAccessOf, type Run } from "../../engine/index.ts";
import { sizedResponse } from "../../http/index.ts";
import { promise, type RunRecord } from "../../kernel/index.ts";
import { auditForm } from "../auth/audit.ts";
import { pagePolicy } from "../auth/security-headers.ts";
import type { HandlersOf, ServerHost } from "../host.ts";
import { answerValue } from "../links/answer-values.ts";
import { openLink, type LinkGrant } from "../links/approval-link.ts";
import { closedPage, openPage, settledPage, type PageFacts } from "../links/approval-page.ts";
import { findPromise, type PromiseState } from "../links/find-promise.ts";
import { makeLink, portsOf } from "../links/make-link.ts";
import { PAGE_STYLE_HASH } from "../links/page-style.ts";

export const approvalLinkHandlers: HandlersOf<typeof approvalLinkOperations> = {
  async createApprovalLink({ host, caller, params, body, url }) {
    // A token that was minted for an hour must not mint an answer for a week.
    if (caller?.run !== undefined)
      throw new RepriseError("ROLE_REQUIRED", "A browser token cannot make links. Use an API token.", {
        details: { status: 403 },
      });
    const { port, name = caller?.name ?? "link", ...values } = body;
    const address = host.access.guard.publicOrigin() ?? url.origin;
    const link = await makeLink(host, params["id"]!, port, { name, ...values }, { mustBeOpen: true, address });
    return { url: link.url, expiresAt: link.expiresAt.toISOString() };
  },

  /** approval-links.R1 */
  async showApprovalLink({ host, params }) {
    const found = await findLink(host, params["token"]!);
    if (found instanceof Response) return found;
    const { facts, state } = found;
    return state.state === "open" ? html(200, openPage(facts, state)) : notOpen(facts, state, false);
  },

  async answerApprovalLink({ host, params, body }) {
    const found = await findLink(host, params["token"]!);
    if (found instanceof Response) return found;
    const response = await answer(host, found, body.decision === "approve", body.reason ?? "");
    const { grant } = found.facts;
    auditForm(host.logger, "answerApprovalLink", {
      caller: grant.n,
      run: grant.r,
      port: grant.p,
      ...(body.reason !== undefined && { reason: body.reason }),
      status: response.status,
    });
    return response;
  },
};

interface FoundLink {
  readonly facts: PageFacts;
  readonly record: RunRecord;
  readonly state: PromiseState;
}

/** The promise of the link, or the page that says why there is none. */
async function findLink(host: ServerHost, token: string): Promise<FoundLink | Response> {
  const grant = openLink(host.access.secret, token);
  const record = grant && (await host.store.findRun(grant.r));
  if (grant === undefined || record === undefined)
    return html(404, closedPage("Unknown link", "This link is not complete, or this server did not make it."));
  const now = host.clock.now();
  const state = await findPromise(host.store, record, grant.p, grant.k);
  const facts = { grant, definition: record.definition, now };
  if (state.state !== "settled" && grant.x <= now)
    return html(410, closedPage("Expired", "The time to answer is over. Ask the sender for a new link."));
  return { facts, record, state };
}

/** approval-links.R2 */
async function answer(host: ServerHost, found: FoundLink, approves: boolean, reason: string): Promise<Response> {
  const { facts, record, state } = found;
  if (state.state !== "open") return notOpen(facts, state, false);
  const { grant } = facts;
  try {
    const value = await answerValue(portsOf(host, record), grant, approves, reason);
    await settle(host, record, grant, value, reason);
  } catch (error) {
    return refused(host, found, error);
  }
  const settled = await findPromise(host.store, record, grant.p, grant.k);
  // The run may have ended and been deleted since; the answer was taken all the same.
  const shown = settled.state === "settled" ? settled : ({ state: "settled", how: "resolved", at: facts.now } as const);
  return html(200, settledPage(facts, { ...shown, at: shown.at ?? facts.now }, true));
}

async function settle(
  host: ServerHost,
  record: RunRecord,
  grant: LinkGrant,
  value: unknown,
  reason: string,
): Promise<void> {
  // Of a run whose code another process has, the name of the port is known and its schema is not.
  const run = runAccessOf(host.client)?.handle(record, { [grant.p]: promise() });
  const options = {
    by: grant.n,
    ...(grant.k !== undefined && { key: grant.k }),
    ...(reason !== "" && { reason }),
  };
  // The ports of the run are not known to the compiler; `resolve` checks them.
  await (run as Run<any> | undefined)?.resolve(grant.p as never, ...([value, options] as [never, never]));
}

async function refused(host: ServerHost, { facts, record, state }: FoundLink, error: unknown): Promise<Response> {
  const { code } = error as { readonly code?: unknown };
  if (!isErrorCode(code)) throw error;
  if (code === "PROMISE_ALREADY_RESOLVED" || code === "RUN_ENDED") {
    const { p: port, k: key } = facts.grant;
    return notOpen(facts, await findPromise(host.store, record, port, key), false);
  }
  // A value that the schema of the port refuses: the person can do nothing but say so.
  if (state.state !== "open") throw error;
  const problem =
    "The answer was refused: the code of the run expects another value. Tell the person who sent the link.";
  return html(422, openPage(facts, state, problem));
}

function notOpen(facts: PageFacts, state: PromiseState, isOwn: boolean): Response {
  if (state.state === "settled") return html(410, settledPage(facts, state, isOwn));
  if (state.state === "gone")
    return html(410, closedPage("Not needed any more", "The run has ended without this decision."));
  return html(
    425,
    closedPage("Not open yet", "The run has not asked for this decision yet. Open the link again later."),
  );
}

function html(status: number, text: string): Response {
  return sizedResponse(text, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": pagePolicy(PAGE_STYLE_HASH),
      "x-robots-tag": "noindex, nofollow",
    },
  });
}
