import { changed, type Mutant } from "./mutant.ts";

function payloads(name: string, change: (data: string) => string): Mutant {
  return {
    name,
    wrap(store) {
      const reading = changed(store, {
        readJournal: async (run: number, after: number, limit?: number) =>
          (await store.readJournal(run, after, limit)).map((entry) => ({ ...entry, data: change(entry.data) })),
        readInbox: async (run: number, after: number) =>
          (await store.readInbox(run, after)).map((row) => ({ ...row, data: change(row.data) })),
      });
      return reading;
    },
  };
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function reserialised(data: string): string {
  return JSON.stringify(parsed(data)) ?? data;
}

export const payloadsMutants: readonly Mutant[] = [
  {
    name: "how long a call took is forgotten when it took no time",
    wrap: (store) =>
      changed(store, {
        readJournal: async (run: number, after: number, limit?: number) =>
          (await store.readJournal(run, after, limit)).map(({ tookMs, ...entry }) =>
            tookMs ? { ...entry, tookMs } : entry,
          ),
      }),
  },
  payloads("payloads are normalized", (data) => data.normalize("NFC")),
  payloads("payloads are stored as JSON, not as text", reserialised),
  payloads("payloads are trimmed", (data) => data.trim()),
  payloads("payloads end at NUL", (data) => data.split("\0")[0] ?? ""),
  payloads("payloads lose characters beyond the basic plane", (data) => data.replace(/[\u{10000}-\u{10ffff}]/gu, "?")),
  payloads("payloads lose line separators and byte order marks", (data) => data.replace(/[\u2028\u2029\ufeff]/g, "")),
  payloads("payloads end after 64 KB", (data) => data.slice(0, 65_536)),
  payloads("a text that comes twice is returned once", (data) => {
    const value = parsed(data);
    return Array.isArray(value) && value[0] === value[1] ? JSON.stringify(value.slice(1)) : data;
  }),
  payloads("long texts of a payload lose their order", (data) => {
    const value = parsed(data) as { messages?: readonly unknown[] } | undefined;
    return value?.messages ? JSON.stringify({ ...value, messages: value.messages.toReversed() }) : data;
  }),
  {
    name: "a deleted run takes the long texts of others with it",
    wrap(store) {
      let isPruned = false;
      return changed(store, {
        prune: async (...given: Parameters<typeof store.prune>) => {
          isPruned = true;
          return store.prune(...given);
        },
        readJournal: async (run: number, after: number, limit?: number) =>
          (await store.readJournal(run, after, limit)).map((entry) =>
            isPruned && entry.data.length > 4_096 ? { ...entry, data: "" } : entry,
          ),
      });
    },
  },
  payloads("payloads are unescaped once too often", (data) => data.replaceAll("\\\\", "\\")),
  payloads("an empty payload is null", (data) => (data === "" || data === '""' || data === "{}" ? "null" : data)),
];
