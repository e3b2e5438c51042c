// Orders: many runs of one workflow. Every value contains the run's id, so that a journal with data of two runs is detected.
// A client waits for each run. Half of them are started once and never again: when such a run is lost, the waiting client
// must get an error.

import { signal, task, workflow } from "reprise";
import type { Client, Watched } from "../client.ts";
import { between, expectOutput, type Part, type PartHost, type RunEnd } from "../part.ts";

const MARK = /order-\d+/g;
/** A client that began to wait this long before the run was lost had seen it. */
const SEEN_MS = 3_000;

export function ordersPart({ chance, scale }: PartHost): Part {
  const count = Math.max(2, Math.round(between(chance, 4, 12) * scale));
  const ids = Array.from({ length: count }, (_, index) => `order-${index}`);
  const once = new Set(ids.filter(() => chance.happens(0.5)));
  /** Runs of `once` that were acknowledged, but not during a rollback. */
  const acknowledged = new Set<string>();
  const watched = new Map<string, Watched | undefined>();
  let vanished: Client["vanished"] = new Map();
  const expected = (id: string): unknown =>
    ["charged", "packed", "labeled", "notified", "shipped"].map((what) => `${what} ${id}`);

  const one = async (client: Client, id: string): Promise<void> => {
    await client.sleep(chance.below(6_000));
    if (!once.has(id)) await client.start("order", id, id);
    else if (await client.startOnce("order", id, id)) acknowledged.add(id);
    watched.set(id, undefined);
    void client.watch("order", id).then((how) => watched.set(id, how));
    await client.sleep(chance.below(2_000));
    await client.tell(
      `signal go to ${id}`,
      (core) => core.get("order" as never, id).signal("go" as never, `notified ${id}` as never, { dedupId: "go" }),
      once.has(id),
    );
  };

  return {
    name: "orders",
    features: ["operation", "task", "child", "signal", "sleep", "result", "start"],
    definitions: (machine) => {
      const pack = task("pack", async (_ctx, id: string) => (await machine.work("pack"), `packed ${id}`));
      const label = workflow("label", async (ctx, id: string) => ctx.run("print", () => `labeled ${id}`));
      const order = workflow("order", { ports: { go: signal<string>() } }, async (ctx, id: string) => {
        const charged = await ctx.run("charge", id, async (_op, it) => (await machine.work("charge"), `charged ${it}`));
        const [packed, labeled] = await Promise.all([ctx.task(pack, id), ctx.child(label, id)]);
        const received = await ctx.receive("go");
        await ctx.sleep(50);
        const shipped = await ctx.run("ship", async () => (await machine.work("ship"), `shipped ${id}`));
        return [charged, packed, labeled, received, shipped];
      });
      return [pack, label, order];
    },
    async drive(client) {
      ({ vanished } = client);
      await Promise.all(ids.map((id) => one(client, id)));
    },
    isWaitedFor: () => [...watched.values()].includes(undefined),
    *judge(ends) {
      yield* mixed(ends);
      for (const id of ids) {
        const end = ends.get(id);
        if (end !== undefined || !once.has(id)) yield* expectOutput(id, end, expected(id));
        else if (acknowledged.has(id) && !vanished.has(id)) yield `I15 run ${id} was acknowledged and does not exist`;
        yield* judgeWatched(id, watched.get(id), end, expected(id), vanished.get(id));
      }
    },
  };
}

/** Every value in a journal belongs to its run. */
function* mixed(ends: ReadonlyMap<string, RunEnd>): Iterable<string> {
  for (const [id, { journal }] of ends) {
    const marks = new Set(journal.flatMap(({ data }) => data.match(MARK) ?? []));
    const own = id.match(MARK)?.[0];
    const others = [...marks].filter((mark) => mark !== (own ?? [...marks][0]));
    if (others.length > 0) yield `I44 run ${id} holds values of ${others.join(" and ")}`;
  }
}

function* judgeWatched(
  id: string,
  how: Watched | undefined,
  end: RunEnd | undefined,
  expected: unknown,
  vanishedMs: number | undefined,
): Iterable<string> {
  if (how === undefined) return yield `I45 the client that waits for run ${id} got no result`;
  if (how.code === undefined) {
    const [got, want] = [JSON.stringify(how.value), JSON.stringify(expected)];
    if (got !== want) yield `I44 the client that waited for run ${id} got ${got}, expected ${want}`;
    return;
  }
  if (vanishedMs === undefined)
    return yield `I45 run ${id} was never lost, but its client got ${how.code}: ${how.message}`;
  if (how.code === "STORE_ROLLED_BACK") {
    if (!how.message!.includes(id)) yield `I45 the error for run ${id} does not name it: ${how.message}`;
    return;
  }
  if (end === undefined && how.code === "RUN_NOT_FOUND" && how.sinceMs > vanishedMs - SEEN_MS) return;
  if (end !== undefined && how.code === "RUN_NOT_FOUND") return;
  yield `I45 run ${id} is lost, but its client got ${how.code}: ${how.message}`;
}
