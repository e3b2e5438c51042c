import { expect, test } from "vitest";
import { z } from "zod";
import { approvalAnswer, templateOf } from "./approval-answer.ts";

const schemaOf = (type: z.ZodType): unknown => z.toJSONSchema(type);

test("a boolean is answered with true and false", () => {
  expect(approvalAnswer(schemaOf(z.boolean()), true)).toEqual({ value: true });
  expect(approvalAnswer(schemaOf(z.boolean()), false)).toEqual({ value: false });
});

test("a property ok or approved is the decision, with the caller's name and the reason where the schema has them", () => {
  const port = schemaOf(z.object({ ok: z.boolean(), by: z.string(), reason: z.string().optional() }));
  expect(approvalAnswer(port, true, { by: "ann" })).toEqual({ value: { ok: true, by: "ann" } });
  expect(approvalAnswer(port, false, { by: "ann", reason: "too much" })).toEqual({
    value: { ok: false, by: "ann", reason: "too much" },
  });
  expect(approvalAnswer(schemaOf(z.object({ approved: z.boolean() })), true)).toEqual({ value: { approved: true } });
});

test("of several forms the one that can say so is taken", () => {
  const port = schemaOf(
    z.discriminatedUnion("ok", [
      z.object({ ok: z.literal(true) }),
      z.object({ ok: z.literal(false), reason: z.string() }),
    ]),
  );
  expect(approvalAnswer(port, true)).toEqual({ value: { ok: true } });
  expect(approvalAnswer(port, false, { reason: "no" })).toEqual({ value: { ok: false, reason: "no" } });
});

test("nothing is guessed: no schema, another type, or another required property", () => {
  expect(approvalAnswer(undefined, true)).toBeUndefined();
  expect(approvalAnswer({}, true)).toBeUndefined();
  expect(approvalAnswer(schemaOf(z.number()), true)).toBeUndefined();
  expect(approvalAnswer(schemaOf(z.object({ ok: z.boolean(), cents: z.number() })), true)).toBeUndefined();
  expect(approvalAnswer(schemaOf(z.object({ ok: z.boolean(), by: z.string() })), true)).toBeUndefined();
  expect(approvalAnswer(schemaOf(z.object({ ok: z.string() })), true)).toBeUndefined();
});

test("editing starts with what the schema requires", () => {
  const port = schemaOf(z.object({ ok: z.boolean(), cents: z.number().min(5), to: z.enum(["card", "bank"]) }));
  expect(templateOf(port)).toEqual({ ok: true, cents: 5, to: "card" });
  expect(templateOf(undefined)).toBeNull();
  const itself: Record<string, unknown> = { type: "object", required: ["a"] };
  itself["properties"] = { a: itself };
  expect(JSON.stringify(templateOf(itself)).length).toBeLessThan(200);
});
