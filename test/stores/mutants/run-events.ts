import type {
  ClaimMessagesOutcome,
  ClaimedMessage,
  EventSubscription,
  Store,
  Write,
} from "../../../src/kernel/index.ts";
import { answering, changed, methods, rewriting, without, type Mutant } from "./mutant.ts";

function announcing(name: string, change: (one: EventSubscription) => EventSubscription): Mutant {
  return methods(name, (store) => ({
    announce: (subscriptions: readonly EventSubscription[]) => store.announce(subscriptions.map(change)),
  }));
}

function claims(name: string, change: (messages: readonly ClaimedMessage[]) => readonly ClaimedMessage[]): Mutant {
  return answering(name, (outcome, write) =>
    write.write === "claim-messages"
      ? { ...(outcome as ClaimMessagesOutcome), messages: change((outcome as ClaimMessagesOutcome).messages) }
      : outcome,
  );
}

function isKind(kind: string): (message: ClaimedMessage) => boolean {
  return ({ event }) => event?.kind === kind;
}

const not =
  (test: (message: ClaimedMessage) => boolean) =>
  (messages: readonly ClaimedMessage[]): readonly ClaimedMessage[] =>
    messages.filter((message) => !test(message));

/** Deletes all events. */
async function dropEvents(store: Store): Promise<void> {
  const worker = await store.registerWorker("careless", 1_000);
  const [{ messages }] = await store.write([
    { write: "claim-messages", worker, tokens: ["a", "b", "c"], destinations: ["webhook:all"] },
  ] as const);
  for (const { firstRun, run, seq, token } of messages)
    await store.write([{ write: "message-delivered", firstRun, run, seq, token }]);
  await store.releaseWorker(worker);
}

export const runEventMutants: readonly Mutant[] = [
  announcing("every webhook gets the events of all definitions", (one) => without(one, "definitions")),
  claims("a terminated run is no event", not(isKind("cancelled"))),
  claims("an event does not say what happened when", (messages) =>
    messages.map((message) => (message.event ? { ...message, event: { ...message.event, at: 0 } } : message)),
  ),
  claims("an open promise is no event", not(isKind("promise"))),
  claims("two stops at the same entry are one event", (messages) =>
    messages.filter(({ destination, event }, at) =>
      messages.slice(0, at).every((one) => one.destination !== destination || one.event?.kind !== event?.kind),
    ),
  ),
  claims("a run that the store blocks is no event", not(isKind("blocked"))),
  methods("a process never stops writing events", (store) => ({
    announce: (subscriptions: readonly EventSubscription[]) =>
      subscriptions.length > 0 && store.announce(subscriptions),
  })),
  {
    name: "a delivered event makes the next message of its run due",
    wrap(store) {
      return changed(store, {
        async write(writes: readonly Write[]) {
          const outcomes = await store.write(writes);
          return outcomes.map((outcome, n) =>
            writes[n]?.write === "message-delivered" ? { status: "committed", more: true } : outcome,
          );
        },
      });
    },
  },
  rewriting("a claim has no limit per destination", (write) =>
    write.write === "claim-messages" ? without(write, "perDestination") : write,
  ),
  methods("prune deletes runs with events", (store) => ({
    prune: async (...asked: Parameters<Store["prune"]>) => {
      await dropEvents(store);
      return store.prune(...asked);
    },
  })),
  rewriting(
    "a delivered event stays",
    (write) => (write.write === "message-delivered" && write.firstRun < 0 ? { ...write, token: "" } : write),
    (outcome, write) =>
      write.write === "message-delivered" && write.firstRun < 0 ? { status: "committed", more: false } : outcome,
  ),
];
