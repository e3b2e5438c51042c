import { KEYED_ANSWER_MS, type KeyedRequest, type KeyReservation } from "../../../src/kernel/index.ts";
import { methods, type Mutant } from "./mutant.ts";

export const keyedAnswerMutants: readonly Mutant[] = [
  methods("a key is never held", (store) => ({
    async reserveKey(request: KeyedRequest, holdMs: number): Promise<KeyReservation> {
      const found = await store.reserveKey(request, holdMs);
      return found.status === "held" ? { status: "reserved" } : found;
    },
  })),
  methods("an answer is not recorded", () => ({ recordAnswer: async () => undefined })),
  methods("a key does not know its body", (store) => ({
    reserveKey: ({ request }: KeyedRequest, holdMs: number) => store.reserveKey({ request, body: "" }, holdMs),
    recordAnswer: ({ request }: KeyedRequest, code: number, answer: string) =>
      store.recordAnswer({ request, body: "" }, code, answer),
    releaseKey: ({ request }: KeyedRequest, forget: boolean) => store.releaseKey({ request, body: "" }, forget),
  })),
  methods("a key is held for a day", (store) => ({
    reserveKey: (request: KeyedRequest) => store.reserveKey(request, KEYED_ANSWER_MS),
  })),
  methods("a released key is forgotten", (store) => ({
    releaseKey: (request: KeyedRequest) => store.releaseKey(request, true),
  })),
  methods("a released key stays reserved", () => ({ releaseKey: async () => undefined })),
  methods("old answers are not deleted", () => ({ deleteOldAnswers: async () => 0 })),
];
