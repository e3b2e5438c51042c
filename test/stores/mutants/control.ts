import type { Store } from "../../../src/kernel/index.ts";
import { methods, type Mutant } from "./mutant.ts";

export const controlMutants: readonly Mutant[] = [
  methods("an item that is gone still looks held", (store) => ({
    itemTokens: async (items: Parameters<Store["itemTokens"]>[0]) =>
      (await store.itemTokens(items)).map((token) => token ?? "somebody"),
  })),
];
