import type { ClaimMessagesOutcome, ClaimedMessage, Store, Write } from "../../../src/kernel/index.ts";
import { answering, changed, methods, rewriting, turns, type Mutant } from "./mutant.ts";

function claims(name: string, change: (message: ClaimedMessage) => ClaimedMessage): Mutant {
  return answering(name, (outcome, write) =>
    write.write === "claim-messages"
      ? { ...(outcome as ClaimMessagesOutcome), messages: (outcome as ClaimMessagesOutcome).messages.map(change) }
      : outcome,
  );
}

/** A number no run has; a fence of it is void. */
const NOBODY = 987_654_321;

export const outboxMutants: readonly Mutant[] = [
  turns("messages to the outside are not kept", (turn) => ({ ...turn, outgoing: [] })),
  {
    name: "a message is next when the one before it is claimed",
    wrap(store) {
      return changed(store, {
        async write(writes: readonly Write[]) {
          const outcomes = await store.write(writes);
          // What was claimed is taken for delivered.
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
  rewriting("a claim of messages knows no destination", (write) =>
    write.write === "claim-messages" ? { ...write, destinations: ["mail", "chat"] } : write,
  ),
  claims("a message comes without its payload", (message) => ({ ...message, data: "{}" })),
  claims("the attempts of a message are forgotten", (message) => ({ ...message, attempt: 0 })),
  answering("a delivery never says that there is more", (outcome, write) =>
    write.write === "message-delivered" && "more" in outcome ? { ...outcome, more: false } : outcome,
  ),
  answering("a void delivery is taken for a good one", (outcome, write) =>
    write.write === "message-delivered" ? { status: "committed", more: false } : outcome,
  ),
  rewriting("a message that failed is next at once", (write) =>
    write.write === "return-message" ? { ...write, availableAt: 0 } : write,
  ),
  rewriting(
    "a message given back stays where it is",
    (write) => (write.write === "return-message" ? { ...write, slot: NOBODY } : write),
    (outcome, write) => (write.write === "return-message" ? { status: "committed" } : outcome),
  ),
  {
    name: "prune takes runs with messages along",
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
  methods("a goodbye keeps what the worker holds", () => ({ releaseWorker: async () => undefined })),
  methods("info does not know the outbox", (store) => ({
    info: async () => ({
      ...(await store.info()),
      outbox: { pending: 0, failing: 0, oldestAt: undefined, destinations: [] },
    }),
  })),
];
