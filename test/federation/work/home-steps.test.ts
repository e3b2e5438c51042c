// What a home keeps of steps that did not become part of a run.

import { expect, test } from "vitest";
import { mediaType, valueKey } from "../../../src/base/index.ts";
import { HomeSteps } from "../../../src/federation/work/home-steps.ts";
import { checkStepStatement, stepStatement, taskStep } from "../../../src/federation/work/step-statement.ts";
import { keyOf, Site } from "../sync/site.ts";

const studio = keyOf("studio");

function executedAs(result: string, key = studio) {
  const step = taskStep("Task(0)", "render", "7", { result });
  const facts = { run: "film-1", generation: 0, attempt: 0, execution: 1, runtime: "{}", startedAt: 5, tookMs: 2 };
  return { origin: key.origin, ...facts, step };
}

test("a late step is listed with its statement, and garbage collection leaves it and its value", () => {
  const { home } = new Site("hub");
  const steps = new HomeSteps(home);
  const executed = executedAs('"made"');
  const envelope = stepStatement(executed, studio);
  steps.keepLate("studio", envelope, executed, '"made"');
  steps.keepLate("studio", envelope, executed, '"made"');
  home.gc({ unnamedBefore: Number.MAX_SAFE_INTEGER });
  expect(steps.late()).toEqual([{ key: expect.stringMatching(/^[0-9a-f]{64}$/) as string, ...executed }]);
  const [late] = steps.late();
  expect(Buffer.from(home.content(late!.key)!.bytes).toString()).toBe(envelope);
  expect(home.content(valueKey('"made"'))).toMatchObject({ type: mediaType("value") });
});

test("steps that differ are a conflict with both statements", () => {
  const { home } = new Site("hub");
  const ends = ['"a"', '"b"'].map((result, n) => {
    const key = keyOf(`peer-${n}`);
    return { peer: `peer-${n}`, statement: stepStatement(executedAs(result, key), key) };
  });
  new HomeSteps(home).addDivergence({ run: "film-1", command: "Task(0)", ends });
  expect(home.conflicts()).toMatchObject([
    { kind: "divergence", cell: "run:film-1/Task(0)", state: "open", evidence: { ends } },
  ]);
});

test("a statement is refused if a byte of it is changed, and accepted from its signer only", () => {
  const envelope = stepStatement(executedAs('"made"'), studio);
  expect(checkStepStatement(envelope, [studio])).toEqual({ status: "valid", executed: executedAs('"made"') });
  expect(checkStepStatement(envelope, [keyOf("barn")]).status).toBe("refused");
  expect(checkStepStatement(stepStatement(executedAs('"made"'), undefined), [studio]).status).toBe("refused");
  // Signed by an admitted key that is not the one it names.
  const borrowed = stepStatement(executedAs('"made"', keyOf("barn")), studio);
  expect(checkStepStatement(borrowed, [studio, keyOf("barn")]).status).toBe("refused");
  for (let at = 0; at < envelope.length; at += 1) {
    const other = envelope[at] === "A" ? "B" : "A";
    const changed = `${envelope.slice(0, at)}${other}${envelope.slice(at + 1)}`;
    expect(checkStepStatement(changed, [studio]).status, `byte ${at}`).toBe("refused");
  }
});
