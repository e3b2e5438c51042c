import { expect, test } from "vitest";
import { checkpointKeyOf } from "./checkpoint-key.ts";
import { compareItems, orderKeyNumber, orderKeyOf, pathOf, ROOT_PATH } from "./order-key.ts";

test("order keys (G1): the vectors of scenario 41", () => {
  const start = { parent: ROOT_PATH, edge: 0 };
  const think = pathOf(start, "think");
  expect(orderKeyOf(start)).toBe("caeeba96ef6ae0d5");
  expect(think).toBe("c6a285a84c59a6cc8cc6fe51e514d12167d9025f180fb15a05fd34715c686db4");
  expect(orderKeyOf({ parent: think, edge: 1 })).toBe("d7ee5d7c1ec8a4ff");
  expect([0, 1].map((spread) => orderKeyOf({ parent: think, edge: 2, spread }))).toEqual([
    "fa3cc8c18b63a1e6",
    "5fc9e8ec9766bd0e",
  ]);
});

const item = (node: string, key: bigint) => ({ node, orderKey: key.toString(16).padStart(16, "0"), path: "" });

test("idempotency key: the vectors of scenario 1, in either order of the frontier", () => {
  const frontier = [item("node-b", 200n), item("node-a", 100n)];
  const state = ['{"counter":10,"query":"result"}'];
  for (const order of [frontier, [...frontier].reverse()]) {
    expect(checkpointKeyOf("run-001", 1, order, state)).toBe(
      "sha256:9180e06f381c399cd41e3056ee8caa35065c4fd6877e285e82714b440b24c6ad",
    );
    expect(checkpointKeyOf("run-001", 2, order, state)).toBe(
      "sha256:14c054d553e7970a73dec34b6337086b61a4d0a96464c9f82849e25b8c66e68b",
    );
  }
  expect(checkpointKeyOf("run-001", 1, [], ["{}"])).toBe(
    "sha256:bbf22e332d3c6c6e5a10a0dcfc84735947e833a5ed867bf1c9d0898fa1ba341e",
  );
});

test("max uint64: the key of scenario 2", () => {
  const frontier = [item("process_query", 18446744073709551615n)];
  expect(checkpointKeyOf("run-001", 1, frontier, ['{"query":"hello"}'])).toBe(
    "sha256:6753a69ca8b6ca0501a3012de136dd61f57e9c06847e085524384a3a88933604",
  );
  expect(orderKeyNumber(frontier[0]!.orderKey)).toBe(18446744073709551615n);
});

test("items are ordered by key as numbers, ties by path", () => {
  const items = [item("a", 2n ** 63n), item("b", 1n), { ...item("c", 1n), path: "00" }, item("d", 2n ** 64n - 1n)];
  expect([...items].sort(compareItems).map(({ node }) => node)).toEqual(["b", "c", "a", "d"]);
});
