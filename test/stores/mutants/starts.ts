import type { Write } from "../../../src/kernel/index.ts";
import { changed, writing, rewriting, answering, methods, records, without, type Mutant } from "./mutant.ts";

export const startsMutants: readonly Mutant[] = [
  answering("every start returns started", (outcome) =>
    "status" in outcome && outcome.status === "exists" ? { ...outcome, status: "started" } : outcome,
  ),
  answering("a start of an existing run returns the input of the call", (outcome, write) =>
    write.write === "start" && "first" in outcome
      ? { ...outcome, first: { ...outcome.first, data: write.run.started } }
      : outcome,
  ),
  rewriting("a run is never leased to its starter", (write) =>
    write.write === "start" ? without(write, "claim") : write,
  ),
  rewriting("an ended run's id can be started again", async (write, store) => {
    if (write.write !== "start") return write;
    const taken = await store.findRun(write.run.id);
    return taken?.endedAt === undefined ? write : { ...write, run: { ...write.run, id: `${write.run.id} again` } };
  }),
  {
    name: "ids are compared as a lenient collation does",
    wrap(store) {
      const plain = (id: string) => id.normalize("NFKD").replace(/\p{M}/gu, "").trim().toLowerCase();
      const collated = writing(store, (write) => {
        if (write.write === "start") return { ...write, run: { ...write.run, id: plain(write.run.id) } };
        if (write.write === "message")
          return { ...write, to: plain(write.to), arrival: { ...write.arrival, target: plain(write.arrival.target) } };
        return write;
      });
      return changed(collated, { findRun: (id: string) => store.findRun(plain(id)) });
    },
  },
  methods("an unknown id has the newest run", (store) => ({
    findRun: async (id: string) => (await store.findRun(id)) ?? (await store.listRuns({ limit: 1 }))[0],
  })),
  records("tags are lost", (record) => ({ ...record, tags: [] })),
  rewriting("a target that accepts one message accepts two", (write) =>
    write.write === "message" ? { ...write, once: false } : write,
  ),
  rewriting("every target accepts only one message", (write) =>
    write.write === "message" ? { ...write, once: true } : write,
  ),
  {
    name: "two concurrent messages to a target that accepts one are both stored",
    wrap(store) {
      let busy = 0;
      return changed(store, {
        async write(writes: readonly Write[]) {
          busy += 1;
          const alone = busy === 1;
          const relaxed = writes.map((write) =>
            write.write === "message" && !alone ? { ...write, once: false } : write,
          );
          try {
            return await store.write(relaxed);
          } finally {
            busy -= 1;
          }
        },
      });
    },
  },
  {
    name: "a second message to a target that accepts one is refused only while the first is unread",
    wrap: (store) =>
      writing(store, async (write) => {
        if (write.write !== "message" || !write.once) return write;
        const record = await store.findRun(write.to);
        const unread = record === undefined ? [] : await store.readInbox(record.run, 0);
        return unread.length === 0 ? { ...write, once: false } : write;
      }),
  },
];
