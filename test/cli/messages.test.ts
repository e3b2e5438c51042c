// signal, resolve, reject, query, update and stream, with and without the code of the run.

import { expect, test } from "vitest";
import { createEngine, stream, workflow } from "reprise";
import { DEFINITIONS, finished, jsonLines, startCli } from "./cli-process.ts";
import { cart, order, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([review, order, cart]).start(
    { id: "review-1", what: review, until: "waiting" },
    { id: "review-2", what: review, until: "waiting" },
    { id: "order-1", what: order, until: "waiting" },
    { id: "cart-1", what: cart, until: "waiting" },
  );

test("resolve needs no code: the name is in the journal, and the run continues with the value", async () => {
  using store = await shop();
  const { code, stdout, stderr } = await store.cli("resolve", "review-1", "approval", '{"ok":true}');
  expect([code, stdout]).toEqual([0, "resolved approval of review-1\n"]);
  expect(stderr).toContain("add --file <file> to validate it with the workflow's schema");
  const [json] = jsonLines((await store.cli("resolve", "review-2", "approval", '{"ok":false}', "--json")).stdout);
  expect(json).toEqual({ action: "resolve", id: "review-2", name: "approval", key: null, checked: false });
  expect(await store.finish("review-1")).toMatchObject({ status: "completed", output: true });
  expect(await store.finish("review-2")).toMatchObject({ status: "completed", output: false });
});

test("a second value for a promise is refused and the first one stays", async () => {
  using store = await shop();
  await store.cli("resolve", "review-1", "approval", '{"ok":true}');
  const again = await store.cli("reject", "review-1", "approval", "too late");
  expect(again.code).toBe(1);
  expect(again.stderr).toMatch(/^error PROMISE_ALREADY_RESOLVED:/);
  expect(await store.finish("review-1")).toMatchObject({ status: "completed", output: true });
});

test("reject rejects the promise with the message", async () => {
  using store = await shop();
  const { code, stdout } = await store.cli("reject", "review-1", "approval", "out of stock");
  expect([code, stdout]).toEqual([0, "rejected approval of review-1\n"]);
  const { status, error } = await store.finish("review-1");
  expect(status).toBe("failed");
  expect(String(error)).toContain("out of stock");
});

test("without the code an unknown name is refused and nothing is written", async () => {
  using store = await shop();
  for (const [id, name, expected] of [
    ["review-1", "aproval", "It has waited for: approval."],
    ["order-1", "payment", "yet. Pass --file to validate"],
  ] as const) {
    const { code, stderr } = await store.cli("resolve", id, name, "1");
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error UNKNOWN_PORT: Run .* is not waiting for a promise named `\w+` yet\. /);
    expect(stderr).toContain(expected);
  }
  const [shown] = jsonLines((await store.cli("show", "order-1", "--json")).stdout);
  expect(shown).toMatchObject({ status: "waiting", unread: 0 });
});

test("a message to a run that has ended is refused", async () => {
  using store = await shop();
  await store.cli("cancel", "order-1");
  await store.finish("order-1");
  const { code, stderr } = await store.cli("resolve", "order-1", "payment", "1");
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error RUN_ENDED: Run order-1 has ended \(cancelled\)/);
});

test("with the code a promise can be resolved before the run waits for it, and its schema validates the value", async () => {
  using store = await shop();
  const wrong = await store.cli("resolve", "order-1", "payment", '{"cents":"many"}', "--file", DEFINITIONS);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(/^error BAD_INPUT: .*cents/);
  const unknown = await store.cli("resolve", "order-1", "paiment", "1", "--file", DEFINITIONS);
  expect(unknown.stderr).toMatch(/^error UNKNOWN_PORT: Workflow order has no promise paiment; its ports are: payment/);
  const { code, stdout } = await store.cli(
    "resolve",
    "order-1",
    "payment",
    '{"cents":5}',
    "--file",
    DEFINITIONS,
    "--json",
  );
  expect(code).toBe(0);
  expect(jsonLines(stdout)).toEqual([{ action: "resolve", id: "order-1", name: "payment", key: null, checked: true }]);
});

test("a string without JSON quotes is refused with a hint", async () => {
  using store = await shop();
  const { code, stderr } = await store.cli("resolve", "review-1", "approval", "yes");
  expect(code).toBe(2);
  expect(stderr).toContain(`A JSON string needs quotes inside quotes: '"yes"'`);
});

test("signals arrive in order, and a stream can be followed while the run continues", async () => {
  using store = await shop();
  for (const sku of ["a", "b"]) {
    const sent = await store.cli("signal", "cart-1", "add", JSON.stringify({ sku }), "--dedup-id", sku);
    expect([sent.code, sent.stdout]).toEqual([0, "sent add to cart-1\n"]);
  }
  await store.cli("signal", "cart-1", "add", '{"sku":"b"}', "--dedup-id", "b");
  const reading = startCli(["stream", "cart-1", "said", "--json", "--store", store.url]);
  const read = finished(reading);
  const [json] = jsonLines((await store.cli("signal", "cart-1", "checkout", "--json")).stdout);
  expect(json).toEqual({ action: "signal", id: "cart-1", name: "checkout", checked: false });
  expect(await store.finish("cart-1")).toMatchObject({ status: "completed", output: ["a", "b"] });
  const { code, stdout } = await read;
  expect(code).toBe(0);
  expect(jsonLines(stdout)).toEqual([
    { offset: 1, value: "got a" },
    { offset: 2, value: "got b" },
  ]);
  expect((await store.cli("stream", "cart-1", "said", "--after", "1")).stdout).toBe("     2  'got b'\n");
});

test("a stream shows where a step was executed again, also as JSON", async () => {
  using store = await shop();
  const chat = workflow("chat", { ports: { words: stream<string>() } }, async (ctx) =>
    ctx.run(
      "model",
      (op) => {
        op.emit("words", `try ${op.attempt}`);
        if (op.attempt === 1) throw new Error("once");
      },
      { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } },
    ),
  );
  {
    await using engine = await createEngine({ store: store.url, definitions: [chat], logger: false });
    await (await engine.start(chat, undefined, { id: "chat-1" })).result();
  }
  const { stdout } = await store.cli("stream", "chat-1", "words");
  expect(stdout.split("\n")).toEqual([
    "     1  'try 1'",
    "     2  reset: Operation(0) is repeated (execution 2); its values above are void",
    "     3  'try 2'",
    "",
  ]);
  expect(jsonLines((await store.cli("stream", "chat-1", "words", "--json")).stdout)).toEqual([
    { offset: 1, value: "try 1", step: "Operation(0)", execution: 1 },
    { offset: 2, reset: { step: "Operation(0)", execution: 2 } },
    { offset: 3, value: "try 2", step: "Operation(0)", execution: 2 },
  ]);
});

test("an unknown signal is refused, with and without the code", async () => {
  using store = await shop();
  const unseen = await store.cli("signal", "cart-1", "ad", "1");
  expect([unseen.code, unseen.stderr]).toEqual([
    2,
    expect.stringContaining("is not waiting for a signal named `ad` yet. It has waited for: add, checkout."),
  ]);
  const unknown = await store.cli("signal", "cart-1", "ad", "1", "--file", DEFINITIONS);
  expect(unknown.stderr).toContain("error UNKNOWN_PORT: Workflow cart has no signal ad");
  const wrong = await store.cli("signal", "cart-1", "add", "1", "--file", DEFINITIONS);
  expect(wrong.stderr).toMatch(/^error BAD_INPUT:/);
});

test("a message to a port of another kind is refused with the command for that kind", async () => {
  using store = await shop();
  const unseen = await store.cli("signal", "review-1", "approval", "1");
  expect(unseen.stderr).toContain(
    `Run review-1 has no signal \`approval\`. \`approval\` is a promise: use \`reprise resolve\`.\n  next: reprise resolve review-1 approval '<value as JSON>' --store ${store.url}\n`,
  );
  const known = await store.cli("resolve", "cart-1", "add", "1", "--file", DEFINITIONS);
  expect(known.code).toBe(2);
  expect(known.stderr).toContain(
    `Workflow cart has no promise add; its ports are: add (signal), checkout (signal), said (stream), count (query), drop (update). \`add\` is a signal: use \`reprise signal\`.\n  next: reprise signal cart-1 add '<value as JSON>' --file ${DEFINITIONS} --store ${store.url}\n`,
  );
});

test("with the code a message can be sent before its run starts", async () => {
  using store = await shop();
  const blind = await store.cli("signal", "cart-2", "checkout", "--before-start", "cart");
  expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining("--before-start needs --file")]);
  const early = ["--before-start", "cart", "--file", DEFINITIONS];
  expect((await store.cli("signal", "cart-2", "add", '{"sku":"x"}', ...early)).code).toBe(0);
  expect((await store.cli("signal", "cart-2", "checkout", ...early)).code).toBe(0);
  expect(await store.statusOf("cart-2")).toBe("expected");
  await store.start({ id: "cart-2", what: cart, until: "completed" });
  expect(await store.finish("cart-2")).toMatchObject({ output: ["x"] });
});

test("a query writes nothing; a worker answers an update, also with an error", async () => {
  using store = await shop();
  const code = ["--file", DEFINITIONS];
  await store.cli("signal", "cart-1", "add", '{"sku":"a"}');
  const unanswered = await store.cli(
    "update",
    "cart-1",
    "drop",
    '"a"',
    ...code,
    "--timeout",
    "50ms",
    "--dedup-id",
    "d1",
  );
  expect([unanswered.code, unanswered.stderr]).toEqual([1, expect.stringContaining("error RESULT_TIMEOUT:")]);
  await using _engine = await createEngine({ store: store.url, definitions: [cart], logger: SILENT });
  const dropped = await store.cli("update", "cart-1", "drop", '"a"', ...code, "--dedup-id", "d1");
  expect([dropped.code, dropped.stdout]).toEqual([0, "1\n"]);
  // The update is in the journal now, so no code is needed.
  const again = await store.cli("update", "cart-1", "drop", '"a"', "--json");
  expect(again.code).toBe(1);
  expect(jsonLines(again.stdout)).toEqual([
    {
      action: "update",
      id: "cart-1",
      name: "drop",
      result: null,
      error: { name: "RangeError", message: "there is no a" },
    },
  ]);
  const [counted] = jsonLines((await store.cli("query", "cart-1", "count", ...code, "--json")).stdout);
  expect(counted).toEqual({ action: "query", id: "cart-1", name: "count", result: 0, error: null });
  expect((await store.cli("query", "cart-1", "count", ...code)).stdout).toBe("0\n");
});

test("a query needs the code, and so does the first update", async () => {
  using store = await shop();
  const blind = await store.cli("query", "cart-1", "count");
  expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining("required option '--file <file>'")]);
  const unseen = await store.cli("update", "cart-1", "drop", '"a"');
  expect([unseen.code, unseen.stderr]).toEqual([
    2,
    expect.stringContaining("has not received an update named `drop` yet"),
  ]);
  const unknown = await store.cli("query", "cart-1", "size", "--file", DEFINITIONS);
  expect(unknown.stderr).toContain("error UNKNOWN_PORT: Workflow cart has no query size");
});
