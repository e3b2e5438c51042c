import { describe, expect, test } from "vitest";
import { append, last } from "./channel.ts";
import { END, graph, graphBody, START, type GraphBody } from "./definition.ts";
import { ROOT_PATH } from "./order-key.ts";
import { route, type FinishedItem, type RouteResult, type WaitingJoin } from "./route.ts";

const done = (node: string, goto?: FinishedItem["goto"]): FinishedItem => ({
  node,
  path: `${ROOT_PATH}/${node}`,
  goto,
});
const nothing = (): void => {};

function next(
  body: GraphBody,
  state: unknown,
  finished: readonly FinishedItem[],
  waiting: readonly WaitingJoin[] = [],
) {
  return summary(route(body, state, finished, waiting));
}

function summary({ items, waiting }: RouteResult) {
  const activated = items.map(({ node, parent, edge, spread, input }) =>
    spread === undefined ? `${parent}→${node} ${edge}` : `${parent}→${node}[${spread}]=${String(input)} ${edge}`,
  );
  return {
    activated,
    waiting: waiting.map(({ node, arrived }) => `${node}: ${arrived.map((one) => one.node).join()}`),
  };
}

const base = () =>
  graph("g", { state: { n: last(0), list: append<number>() } })
    .node("a", nothing)
    .node("b", nothing)
    .node("c", nothing)
    .node("d", nothing);

describe("edges", () => {
  test("the first edge whose condition is true is taken, and its index counts the targets before it", () => {
    const body = graphBody(
      base()
        .edge(START, "a")
        .edge("a", ["b", "c"], ({ n }) => n === 1)
        .edge("a", "d", ({ n }) => n > 1)
        .edge("a", END),
    );
    expect(next(body, { n: 1 }, [done("a")]).activated).toEqual(["a→b 0", "a→c 1"]);
    expect(next(body, { n: 2 }, [done("a")]).activated).toEqual(["a→d 2"]);
    expect(next(body, { n: 0 }, [done("a")]).activated).toEqual([]);
  });

  test("two parents that lead to one node activate it once, by the first in fold order", () => {
    const body = graphBody(base().edge(START, ["a", "b"]).edge("a", "c").edge("b", "c").edge("c", "d"));
    expect(next(body, {}, [done("a"), done("b")]).activated).toEqual(["a→c 0"]);
    expect(next(body, {}, [done("b"), done("a")]).activated).toEqual(["b→c 0"]);
  });

  test("goto takes precedence over edges, and its index follows theirs", () => {
    const body = graphBody(base().edge(START, "a").edge("a", ["b", "c"]).edge("b", "d").edge("c", "d"));
    expect(next(body, {}, [done("a", ["d"])]).activated).toEqual(["a→d 2"]);
    expect(next(body, {}, [done("a", [END])]).activated).toEqual([]);
    expect(() => next(body, {}, [done("a", ["x"])])).toThrow(/leads to x, which is not a node/);
  });

  test("a run whose last nodes have edges without a true condition can make no progress", () => {
    const body = graphBody(
      base()
        .edge(START, "a")
        .edge("a", "b", ({ n }) => n > 0)
        .edge("b", ["c", "d"]),
    );
    expect(() => next(body, { n: 0 }, [done("a")])).toThrow(expect.objectContaining({ code: "NO_PROGRESS" }));
    // Another node continues.
    expect(next(body, { n: 0 }, [done("a"), done("b")]).activated).toEqual(["b→c 0", "b→d 1"]);
  });

  test("a condition that throws, returns a promise or names a node is refused", () => {
    const broken = (when: () => unknown) =>
      graphBody(
        base()
          .edge(START, "a")
          .edge("a", ["b", "c", "d"], when as () => boolean),
      );
    expect(() =>
      next(
        broken(() => {
          throw new Error("no");
        }),
        {},
        [done("a")],
      ),
    ).toThrow(/threw: no/);
    expect(() =>
      next(
        broken(async () => true),
        {},
        [done("a")],
      ),
    ).toThrow(/returned a promise/);
    expect(() =>
      next(
        broken(() => "b"),
        {},
        [done("a")],
      ),
    ).toThrow(/returned "b"; expected true or false/);
  });
});

describe("a spread", () => {
  const spread = (items: (state: { list: readonly number[] }) => unknown) =>
    graphBody(
      graph("g", { state: { list: append<number>() } })
        .node("a", nothing)
        .node("each", (_ctx, _state, _item: number) => {})
        .edge(START, "a")
        .spread("a", "each", items as never),
    );

  test("activates one item per element, in order, and none for an empty list", () => {
    const body = spread(({ list }) => list);
    expect(next(body, { list: [7, 8] }, [done("a")]).activated).toEqual(["a→each[0]=7 0", "a→each[1]=8 0"]);
    expect(next(body, { list: [] }, [done("a")]).activated).toEqual([]);
  });

  test("gives every item its own path and order key", () => {
    const { items } = route(
      spread(({ list }) => list),
      { list: [1, 1, 1] },
      [done("a")],
      [],
    );
    expect(new Set(items.map(({ path }) => path)).size).toBe(3);
    expect(new Set(items.map(({ orderKey }) => orderKey)).size).toBe(3);
  });

  test("refuses what is no list, and an item that cannot be stored", () => {
    expect(() =>
      next(
        spread(() => "ab"),
        {},
        [done("a")],
      ),
    ).toThrow(/expected a list of items, got string/);
    expect(() =>
      next(
        spread(() => [1, () => 2]),
        {},
        [done("a")],
      ),
    ).toThrow(/item 1 cannot be stored/);
  });
});

describe("a join", () => {
  const joined = graphBody(base().edge(START, ["a", "b"]).edge("b", "c").join(["a", "c"], "d"));

  test("waits in the checkpoint until every node has arrived, and has the path of the first", () => {
    const first = route(joined, {}, [done("a"), done("b")], []);
    expect(summary(first)).toEqual({ activated: ["b→c 0"], waiting: ["d: a"] });
    expect(next(joined, {}, [done("c")], first.waiting)).toEqual({ activated: ["a→d 0"], waiting: [] });
  });

  test("takes one arrival of each node per activation, and keeps the others for the next", () => {
    const twice = [{ node: "d", arrived: [done("a"), done("a")].map((one) => ({ ...one, edge: 0 })) }];
    expect(next(joined, {}, [done("c")], twice)).toEqual({ activated: ["a→d 0"], waiting: ["d: a"] });
  });

  test("fires with the arrivals it has once nothing can reach a missing node", () => {
    expect(next(joined, {}, [done("a")])).toEqual({ activated: ["a→d 0"], waiting: [] });
    // b can still reach c.
    const body = graphBody(
      base()
        .edge(START, ["a", "b"])
        .edge("b", "b", ({ n }) => n > 0)
        .edge("b", "c")
        .join(["a", "c"], "d"),
    );
    expect(next(body, { n: 1 }, [done("a"), done("b")])).toEqual({ activated: ["b→b 0"], waiting: ["d: a"] });
  });
});
