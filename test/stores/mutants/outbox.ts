import type { ClaimMessagesOutcome, ClaimedMessage, Store, Write } from "../../../src/kernel/index.ts";
import { answering, changed, methods, rewriting, turns, type Mutant } from "./mutant.ts";

function claims(name: string, change: (message: ClaimedMessage) => ClaimedMessage): Mutant {
  return answering(name, (outcome, write) =>
    write.write === "claim-messages"
      ? { ...(outcome as ClaimMessagesOutcome), messages: (outcome as ClaimMessagesOutcome).messages.map(change) }
      : outcome,
  );
}

/** A number that no run has. */
const UNKNOWN_RUN = 987_654_321;

export const outboxMutants: readonly Mutant[] = [
  turns("outgoing messages are not stored", (turn) => ({ ...turn, outgoing: [] })),
  {
    name: "a message is next when the one before it is claimed",
    wrap(store) {
      return changed(store, {
        async write(writes: readonly Write[]) {
          const outcomes = await store.write(writes);
          // Every claimed message counts as delivered.
          for (const [n, write] of writes.entries())
            if (write.write === "claim-messages")
              for (const { firstRun, run, seq, token } of (outcomes[n] as ClaimMessagesOutcome).messages)
                await store.write([{ write: "message-delivered", firstRun, run, seq, token }]);
          return outcomes;
        },
      });
    },
  },
  rewriting("a claim of messages takes one run at a time", (write) =>
    write.write === "claim-messages" ? { ...write, tokens: write.tokens.slice(0, 1) } : write,
  ),
  rewriting("a claim of messages ignores the destination", (write) =>
    write.write === "claim-messages" ? { ...write, destinations: ["mail", "chat"] } : write,
  ),
  claims("an outgoing message has no payload", (message) => ({ ...message, data: "{}" })),
  claims("the attempts of a message are forgotten", (message) => ({ ...message, attempt: 0 })),
  answering("a delivery never returns `more`", (outcome, write) =>
    write.write === "message-delivered" && "more" in outcome ? { ...outcome, more: false } : outcome,
  ),
  answering("a rejected delivery returns committed", (outcome, write) =>
    write.write === "message-delivered" ? { status: "committed", more: false } : outcome,
  ),
  rewriting("a message that failed is due at once", (write) =>
    write.write === "return-message" ? { ...write, availableAt: 0 } : write,
  ),
  rewriting(
    "a returned message stays leased",
    (write) => (write.write === "return-message" ? { ...write, firstRun: UNKNOWN_RUN } : write),
    (outcome, write) => (write.write === "return-message" ? { status: "committed" } : outcome),
  ),
  {
    name: "prune deletes runs with outgoing messages",
    wrap(store) {
      return changed(store, {
        async prune(endedBefore: number, options?: Parameters<Store["prune"]>[1]) {
          const worker = await store.registerWorker("careless", 1_000);
          for (;;) {
            const [{ messages }] = await store.write([
              { write: "claim-messages", worker, tokens: ["a"], destinations: ["mail", "chat"] },
            ] as const);
            if (messages.length === 0) break;
            for (const { firstRun, run, seq, token } of messages)
              await store.write([{ write: "message-delivered", firstRun, run, seq, token }]);
          }
          await store.releaseWorker(worker);
          return store.prune(endedBefore, options);
        },
      });
    },
  },
  claims("a message that was taken over counts no attempt", (message) => ({
    ...message,
    attempt: Math.max(0, message.attempt - 1),
  })),
  methods("a released worker keeps its messages", () => ({ releaseWorker: async () => undefined })),
  methods("info does not count the outbox", (store) => ({
    info: async () => ({
      ...(await store.info()),
      outbox: { pending: 0, failing: 0, oldestAt: undefined, destinations: [] },
    }),
  })),
];
