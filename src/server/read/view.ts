// View: how one caller sees payloads: in which form, or not at all (run.R1), and what is redacted.
//
// view.V1. Reads in the plain form are for people: they redact what the command line redacts. The tagged form is for programs, and exact.
//   Results and answers are exact in both forms (docs/decisions/0195).

import { RepriseError } from "../../base/index.ts";
import { runAccessOf, type RunAccess } from "../../engine/index.ts";
import type { Redaction } from "../../kernel/index.ts";
import { hasRole } from "../auth/role.ts";
import type { Call, ServerHost } from "../host.ts";
import { payloadToWire, type PayloadForm } from "../wire-payload.ts";

export interface View {
  /** The caller has the role `reader`. */
  readonly showsPayloads: boolean;
  readonly form: PayloadForm;
  readonly redaction: Redaction;
  /** The time of the store. */
  readonly now: number;
}

export function viewOf({ host, caller, payloads }: Pick<Call, "host" | "caller" | "payloads">): View {
  return {
    showsPayloads: caller !== undefined && hasRole(caller, "reader"),
    form: payloads,
    redaction: accessOf(host).redaction,
    now: host.store.now(),
  };
}

/** The runs of the server's engine or client. */
export function accessOf({ client }: Pick<ServerHost, "client">): RunAccess {
  const access = runAccessOf(client);
  if (access !== undefined) return access;
  throw new RepriseError("BAD_OPTIONS", "createServer: pass what createEngine or createClient returned.");
}

/** view.V1 */
export function shownPayload({ form, redaction }: View, value: unknown): unknown {
  return form === "tagged" ? payloadToWire(value, form) : payloadToWire(redaction.data(value), form);
}

/** run.R1. The fields with payloads that the view shows, and the names of those that it hides. Undefined values have no field. */
export function payloadFields<K extends string>(
  view: View,
  fields: { readonly [N in K]?: unknown },
): { readonly [N in K]?: unknown } & { readonly hidden?: readonly string[] } {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  if (!view.showsPayloads)
    return (present.length === 0 ? {} : { hidden: present.map(([name]) => name) }) as ReturnType<
      typeof payloadFields<K>
    >;
  return Object.fromEntries(present.map(([name, value]) => [name, shownPayload(view, value)])) as ReturnType<
    typeof payloadFields<K>
  >;
}

export function isoOf(at: number | Date): string {
  return new Date(at).toISOString();
}
