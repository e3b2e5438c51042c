// Reason body: why a run, or work, does not move, for the wire.

import type { WaitReasonBody } from "../../contract/index.ts";
import { withoutPayloads, type WaitReason } from "../../explain/index.ts";
import { payloadToWire } from "../wire-payload.ts";
import type { View } from "./view.ts";

export function reasonBody(given: WaitReason, view: View, id = ""): WaitReasonBody {
  const shown = view.showsPayloads ? given : withoutPayloads(given, { id, now: view.now, hasUnread: false });
  const { reason, text, next, ...facts } = shown;
  return {
    reason,
    text: view.redaction.text(text),
    next,
    facts: payloadToWire(view.redaction.data(facts), "plain") as WaitReasonBody["facts"],
  };
}
