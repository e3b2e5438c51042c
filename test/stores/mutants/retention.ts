import type { ExpireRequest, Store } from "../../../src/kernel/index.ts";
import { changed, methods, without, type Mutant } from "./mutant.ts";

function expiring(name: string, change: (request: ExpireRequest) => ExpireRequest): Mutant {
  return methods(name, (store) => ({ expire: (request: ExpireRequest) => store.expire(change(request)) }));
}

/** The store in which a method also hides a run that its family, or a fork, keeps. */
function hiding(name: string, method: "expire" | "deleteRun"): Mutant {
  return {
    name,
    wrap(store) {
      const hidden = new Set<string>();
      const list = async (filter: Parameters<Store["listRuns"]>[0]) =>
        (await store.listRuns(filter)).filter(({ id }) => !hidden.has(id));
      const findRun = async (id: string) => (hidden.has(id) ? undefined : store.findRun(id));
      const ended = async () => (await store.listRuns({ limit: 100 })).filter(({ endedAt }) => endedAt !== undefined);
      if (method === "deleteRun")
        return changed(store, {
          listRuns: list,
          findRun,
          async deleteRun(id: string) {
            hidden.add(id);
            return { status: "deleted", runs: 1 };
          },
        });
      return changed(store, {
        listRuns: list,
        findRun,
        async expire({ definition, status, endedBefore }: ExpireRequest) {
          const before = hidden.size;
          for (const run of await ended())
            if (run.definition === definition && run.status === status && (run.endedAt ?? 0) < endedBefore)
              hidden.add(run.id);
          return { runs: hidden.size - before, kept: 0, after: undefined, nextEndedAt: undefined };
        },
      });
    },
  };
}

export const retentionMutants: readonly Mutant[] = [
  expiring("runs expire at any age", (request) => ({ ...request, endedBefore: Number.MAX_SAFE_INTEGER })),
  expiring("runs of any status expire", (request) => ({ ...request, status: "completed" })),
  expiring("a batch ignores where it starts", (request) => without(request, "after")),
  hiding("runs expire without their family", "expire"),
  methods("every connection counts the runs that another one deleted", (store) => ({
    async expire(request: ExpireRequest) {
      const { length } = await store.listRuns({ limit: 100 });
      return { ...(await store.expire(request)), runs: length };
    },
  })),
  methods("start keys of live runs are deleted", (store) => ({
    async deleteUnusedKeys(definition: string) {
      for (const { id } of await store.listRuns({ definition, limit: 10 }))
        await store.write([{ write: "terminate", id, data: "{}", answer: "{}", cancel: "{}" }]);
    },
  })),
  methods("a deleted run stays", () => ({ deleteRun: async () => ({ status: "deleted", runs: 2 }) })),
  hiding("a run is deleted while it is needed", "deleteRun"),
  methods("a failed run has no error code", (store) => ({
    async findRun(id: string) {
      const record = await store.findRun(id);
      return record && { ...record, errorCode: undefined };
    },
  })),
];
