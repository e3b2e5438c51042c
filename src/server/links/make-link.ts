// Make link: a new approval link to a promise, for the API and for code of the user's server.

import { checkName, checkOptionNames, checkRunId, RepriseError } from "../../base/index.ts";
import { runAccessOf } from "../../engine/index.ts";
import { hasEnded, type Ports, type RunRecord } from "../../kernel/index.ts";
import type { ServerHost } from "../host.ts";
import { answerValue } from "./answer-values.ts";
import { linkExpiry, signLink, type LinkGrant } from "./approval-link.ts";
import { findPromise } from "./find-promise.ts";

/** Options of `server.approvalLink`. */
export interface ApprovalLinkOptions {
  /** The key of the promise, if it has one. */
  readonly key?: string;
  /** Whom the link is for: `by` of the answer. */
  readonly name: string;
  /** The value that Approve sends. Default: from the schema of the port, else `{ ok: true, by: name }`. */
  readonly approve?: unknown;
  /** The value that Reject sends. Default: from the schema of the port, else `{ ok: false, by: name }`. */
  readonly reject?: unknown;
}

/** A link that was made. */
export interface ApprovalLink {
  readonly url: string;
  readonly expiresAt: Date;
}

/** Two values of a link are part of its address, which mail programs cut at some length. */
const MAX_VALUE_CHARACTERS = 1_000;

type LinkHost = Pick<ServerHost, "access" | "basePath" | "client" | "clock" | "store">;

/** `mustBeOpen`: a promise that the run does not wait for is refused. Else it may be asked for later. */
export async function makeLink(
  host: LinkHost,
  id: string,
  port: string,
  options: ApprovalLinkOptions,
  { mustBeOpen, address }: { readonly mustBeOpen: boolean; readonly address: string },
): Promise<ApprovalLink> {
  checkOptionNames(options, ["approve", "key", "name", "reject"], "approvalLink");
  const { key, name } = options;
  const record = await host.store.findRun(checkRunId(id));
  if (record === undefined)
    throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store: \`reprise list\`.`);
  if (hasEnded(record.status))
    throw new RepriseError("RUN_ENDED", `Run ${id} has ended (${record.status}) and waits for no answer.`);
  const promise = await findPromise(host.store, record, checkName(port, "approvalLink: port"), key);
  if (promise.state === "settled")
    throw new RepriseError("PROMISE_ALREADY_RESOLVED", `Promise ${port} of run ${id} has an answer already.`);
  if (promise.state !== "open" && mustBeOpen)
    throw new RepriseError(
      "UNKNOWN_PORT",
      `Run ${id} does not wait for the promise ${port}${key === undefined ? "" : ` with the key ${key}`}. \`reprise show ${id}\` prints what it waits for.`,
    );
  const grant: LinkGrant = {
    r: id,
    p: port,
    ...(key !== undefined && { k: key }),
    n: checkName(name, "approvalLink: name"),
    x: linkExpiry(host.clock.now(), promise.state === "open" ? promise.deadline : undefined),
    ...(options.approve !== undefined && { a: [checkValue(options.approve, "approve")] as const }),
    ...(options.reject !== undefined && { j: [checkValue(options.reject, "reject")] as const }),
  };
  // Refuses a link whose buttons could not answer.
  for (const approves of [true, false]) await answerValue(portsOf(host, record), grant, approves, "");
  const token = signLink(host.access.secret, grant);
  return { url: `${address}${host.basePath}/a/${token}`, expiresAt: new Date(grant.x) };
}

function checkValue(value: unknown, what: string): unknown {
  const text = JSON.stringify(value);
  if (text !== undefined && text.length <= MAX_VALUE_CHARACTERS) return value;
  throw new RepriseError(
    "BAD_OPTIONS",
    `approvalLink: ${what}: expected JSON of at most ${MAX_VALUE_CHARACTERS} characters: it is part of the address.`,
  );
}

/** The ports of the run's definition; undefined: this process does not have it. */
export function portsOf({ client }: Pick<ServerHost, "client">, record: RunRecord): Ports | undefined {
  return runAccessOf(client)?.registry.findWorkflow(record.definition, record.version)?.ports;
}
