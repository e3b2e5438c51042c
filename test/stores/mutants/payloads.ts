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

function reserialised(data: string): string {
  try {
    return JSON.stringify(JSON.parse(data));
  } catch {
    return data;
  }
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
  payloads("payloads are unescaped once too often", (data) => data.replaceAll("\\\\", "\\")),
  payloads("an empty payload is null", (data) => (data === "" || data === '""' || data === "{}" ? "null" : data)),
];
