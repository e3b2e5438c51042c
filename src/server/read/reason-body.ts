// Reason body: why a run, or work, does not move, for the wire.

import type { WaitReasonBody } from "../../contract/index.ts";
import { withPayloads, type WaitReason } from "../../explain/index.ts";
import { payloadToWire } from "../wire-payload.ts";
import type { View } from "./view.ts";

export function reasonBody(given: WaitReason, view: View, id = ""): WaitReasonBody {
  // The sentence quotes payloads, so it is written again with what the caller may see.
  const redacted = view.showsPayloads ? (payload: unknown) => view.redaction.data(payload) : undefined;
  const shown = withPayloads(given, { id, now: view.now, hasUnread: false }, redacted);
  const { reason, text, next, ...facts } = shown;
  return {
    reason,
    text: view.redaction.text(text),
    next,
    facts: payloadToWire(view.redaction.data(facts), "plain") as WaitReasonBody["facts"],
  };
}
