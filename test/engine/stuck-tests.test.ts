// A test that awaits a result that cannot come: the test engine rejects it and names what the run waits for.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/**
 * In a separate process: a socket or a timer that another test left open in this one could still move things, so the engine would
 * rather wait (stuck-watch.K3).
 */
async function outputOf(program: string): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=reprise-source",
    "--input-type=module",
    "--eval",
    `import { createTestEngine } from "reprise/testing";
     import { flow, graph, promise, queue, signal, stream, task, typed, update, workflow, START, END, last } from "reprise";
     const say = (promise) => promise.then(
       (value) => console.log("result " + JSON.stringify(value)),
       (error) => console.log(error.code + " " + error.message),
     );
     ${program}`,
  ]);
  return stdout.trim().split("\n");
}

const CANNOT = "cannot come: nothing is running, and time stands still.";

test("the error names the promise, signal, timer, task, child, start or queue that the run waits for", async () => {
  const lines = await outputOf(`
    const mail = queue("mail", { concurrency: 1 });
    const send = task("send", { queue: mail }, () => "sent");
    const flaky = task("flaky", { retry: { maxAttempts: 2, baseDelay: "1 hour" } }, () => { throw new Error("no"); });
    const asks = workflow("asks", { ports: { approval: promise() } }, (ctx) => ctx.promise("approval"));
    const limited = workflow("limited", { ports: { approval: promise() } },
      (ctx) => ctx.promise("approval", { timeout: "1 day" }));
    const asksAnn = workflow("asks ann", { ports: { approval: promise() } }, (ctx) => ctx.promise("approval", { key: "ann" }));
    const listens = workflow("listens", { ports: { add: signal(), stop: signal() } }, (ctx) => ctx.receive(["add", "stop"]));
    const sleeps = workflow("sleeps", (ctx) => ctx.sleep("30 d"));
    const sleepsOddly = workflow("sleeps oddly", (ctx) => ctx.sleep(5_400_001));
    const tries = workflow("tries", (ctx) => ctx.task(flaky));
    const sends = workflow("sends", (ctx) => ctx.task(send));
    const parent = workflow("parent", (ctx) => ctx.child(asks, undefined, { id: "the-child" }));
    const asksInNode = graph("asks in a node", { state: { n: last(0) }, ports: { go: promise() } })
      .node("wait", async (ctx) => ({ n: await ctx.promise("go") })).edge(START, "wait").edge("wait", END);
    await using engine = await createTestEngine({
      definitions: [asks, asksAnn, limited, listens, sleeps, sleepsOddly, tries, sends, parent, asksInNode, send, flaky],
    });
    for (const what of [asks, asksAnn, limited, listens, sleeps, sleepsOddly, tries, parent])
      await say((await engine.start(what, undefined, { id: what.name })).result());
    await say((await engine.start(asksInNode, {}, { id: "in-node" })).result());
    await say((await engine.start(asks, undefined, { id: "later", delay: "2 h" })).result());
    const paused = await engine.start(asks, undefined, { id: "paused" });
    await paused.pause();
    await say(paused.result());
    await engine.getQueue("mail").pause();
    await say((await engine.start(sends, undefined, { id: "sends" })).result());`);
  const found = lines.map((line) => {
    const [, id, waits] =
      /^RESULT_STUCK The result of run (.*) cannot come: .*? time stands still\. (.*)$/.exec(line) ?? [];
    return [id, waits];
  });
  const asked = 'promise approval. Call run.resolve("approval", …)';
  expect(found).toEqual([
    ["asks", `It has waited 0 ms for ${asked}.`],
    [
      "asks ann",
      'It has waited 0 ms for promise approval with key ann. Call run.resolve("approval", …, { key: "ann" }).',
    ],
    [
      "limited",
      'It has waited 0 ms for promise approval, times out in 1 d. Call run.resolve("approval", …), or engine.clock.advance("1 d").',
    ],
    ["listens", 'It has waited 0 ms for signal add or stop. Call run.signal("add", …) or run.signal("stop", …).'],
    [
      "sleeps",
      expect.stringMatching(/^It waits for a timer, which fires in 30 d, .* Call engine\.clock\.advance\("30 d"\)\.$/),
    ],
    ["sleeps oddly", expect.stringMatching(/which fires in 1 h 30 m, .* Call engine\.clock\.advance\(5400001\)\.$/)],
    ["tries", expect.stringMatching(/^Attempt 2 of task flaky starts in .* Call engine\.clock\.advance\(.+\)\.$/)],
    [
      "parent",
      `It has waited 0 ms for child asks, run the-child, waiting: it has waited 0 ms for ${asked} on the run the-child.`,
    ],
    ["in-node", 'Node wait 1.0 has waited 0 ms for promise go. Call run.resolve("go", …).'],
    ["later", expect.stringMatching(/^The run starts in 2 h, .* Call engine\.clock\.advance\("2 h"\)\.$/)],
    ["paused", expect.stringMatching(/^The run is paused: .* Call run\.resume\(\)\.$/)],
    ["sends", 'Queue mail has been paused for 0 ms; task send waits in it. Call engine.getQueue("mail").resume().'],
  ]);
});

test("in a test engine without a worker, the error names the worker", async () => {
  const lines = await outputOf(`
    const asks = workflow("asks", async () => 1);
    await using engine = await createTestEngine({ definitions: [asks], worker: false });
    await say((await engine.start(asks, undefined, { id: "asks" })).result());`);
  expect(lines).toEqual([
    `RESULT_STUCK The result of run asks ${CANNOT} This test engine was created with worker: false.`,
  ]);
});

test("a result stays pending while the test, a step, a timer, a file or a socket can still bring it", async () => {
  const lines = await outputOf(`
    import { readFile } from "node:fs/promises";
    import { createServer } from "node:http";
    const asks = workflow("asks", { ports: { go: promise() } }, (ctx) => ctx.promise("go"));
    const works = workflow("works", (ctx) => ctx.run("work", () => new Promise((resolve) => setTimeout(resolve, 400, "worked"))));
    await using engine = await createTestEngine({ definitions: [asks, works] });
    const started = async (id) => {
      const run = await engine.start(asks, undefined, { id });
      return { run, said: say(run.result()) };
    };
    {
      const { run, said } = await started("after a real timer");
      await new Promise((resolve) => setTimeout(resolve, 400));
      await run.resolve("go", "timer");
      await said;
    }
    {
      const { run, said } = await started("by a request");
      const server = createServer(async (_, response) => {
        await run.resolve("go", "request");
        response.end();
      });
      await new Promise((resolve) => server.listen(0, resolve));
      await new Promise((resolve) => setTimeout(resolve, 300));
      await fetch("http://localhost:" + server.address().port).then((response) => response.text());
      await said;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    await say((await engine.start(works)).result());
    {
      // Nothing awaits the result yet, so nothing is rejected, although the engine sees no reason to wait.
      const run = await engine.start(asks, undefined, { id: "awaited later" });
      const result = run.result();
      const worker = new (await import("node:worker_threads")).Worker("setTimeout(() => {}, 400)", { eval: true });
      await new Promise((resolve) => worker.once("exit", resolve));
      await run.resolve("go", "later");
      await say(result);
    }
    await say((await engine.start(asks, undefined, { id: "never" })).result());`);
  expect(lines).toEqual([
    'result "timer"',
    'result "request"',
    'result "worked"',
    'result "later"',
    `RESULT_STUCK The result of run never ${CANNOT} It has waited 0 ms for promise go. Call run.resolve("go", …).`,
  ]);
});

test("after the error the run goes on, and the next result comes", async () => {
  const lines = await outputOf(`
    const asks = workflow("asks", { ports: { go: promise() } }, (ctx) => ctx.promise("go"));
    await using engine = await createTestEngine({ definitions: [asks] });
    const run = await engine.start(asks, undefined, { id: "asks" });
    await say(run.result());
    await run.resolve("go", 7);
    await say(run.result());
    await say((await engine.start(asks, undefined, { id: "other" })).result());`);
  expect(lines.map((line) => line.slice(0, 40))).toEqual([
    "RESULT_STUCK The result of run asks cann",
    "result 7",
    "RESULT_STUCK The result of run other can",
  ]);
});

test("a result that a crashed engine never settles does not keep the process alive", async () => {
  const lines = await outputOf(`
    import { crashEverywhere } from "reprise/testing";
    const asks = workflow("asks", { ports: { go: promise() } }, (ctx) => ctx.promise("go"));
    const drive = (engine, id) => engine.get(asks, id).resolve("go", 7);
    console.log((await crashEverywhere(asks, undefined, { drive })).output);`);
  expect(lines).toEqual(["7"]);
});
