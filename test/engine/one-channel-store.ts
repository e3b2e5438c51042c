// One-channel store: a store whose process learns of the commits of others in one way only.

import type { StoreSource } from "reprise";
import { storeOf } from "../../src/stores/index.ts";

export type Channel = "notices" | "polls";

/** With `notices`, a poll finds nothing unless a notice came before it; with `polls`, no notice comes. */
export function oneChannelStore(url: string, channel: Channel): StoreSource {
  return {
    async "~open"(options) {
      const store = await storeOf(url)["~open"](options);
      let isNoticed = false;
      const replaced: Readonly<Record<string, unknown>> = {
        onNotice:
          channel === "polls"
            ? undefined
            : (listener: () => void) =>
                store.onNotice?.(() => {
                  isNoticed = true;
                  listener();
                }),
        pollChanges() {
          if (channel === "notices" && !isNoticed) return false;
          isNoticed = false;
          return store.pollChanges();
        },
      };
      return new Proxy(store, {
        get(target, key) {
          if (key in replaced) return replaced[key as string];
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}
