import { expect, test } from "vitest";
import { CancelledError, decode, encode, FatalError, InvariantError, RepriseError, RetryLaterError } from "./index.ts";

function roundTrip(error: unknown): Error & Record<string, unknown> {
  const text = encode(error);
  const back = decode(text);
  expect(encode(back)).toBe(text);
  expect(back).toBeInstanceOf(Error);
  return back as Error & Record<string, unknown>;
}

test.each([Error, TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError])(
  "%o comes back as an instance of itself",
  (ErrorClass) => {
    const back = roundTrip(new ErrorClass("no"));
    expect(Object.getPrototypeOf(back)).toBe(ErrorClass.prototype);
    expect(back.message).toBe("no");
  },
);

test("errors of the package decode to instances of their classes", () => {
  expect(roundTrip(new FatalError("stop", { cause: 1 }))).toBeInstanceOf(FatalError);
  expect(roundTrip(new FatalError("stop", { cause: 1 })).cause).toBe(1);
  expect(roundTrip(new CancelledError())).toBeInstanceOf(CancelledError);
  const back = roundTrip(new RepriseError("STORE_FULL", "full", { details: { free: 0n } }));
  expect(back).toBeInstanceOf(RepriseError);
  expect(back).toMatchObject({ code: "STORE_FULL", family: "store", details: { free: 0n } });
});

test("an error of any other class decodes to an Error with its name, code and data", () => {
  class PaymentDeclined extends Error {
    override name = "PaymentDeclined";
    code = "E_DECLINED";
    amount = 12n;
    at = new Date(0);
  }
  const back = roundTrip(new PaymentDeclined("no money"));
  expect(Object.getPrototypeOf(back)).toBe(Error.prototype);
  expect(String(back)).toBe("PaymentDeclined: no money");
  expect(back).toMatchObject({ code: "E_DECLINED", amount: 12n, at: new Date(0) });
  expect(Object.keys(back)).toEqual(["code", "amount", "at"]);
  expect(roundTrip(new RetryLaterError("5 s"))).toMatchObject({
    name: "RetryLaterError",
    code: "RETRY_LATER",
    afterMs: 5_000,
  });
  expect(roundTrip(new InvariantError("oops")).name).toBe("InvariantError");
  expect(roundTrip(new DOMException("gone", "AbortError")).name).toBe("AbortError");
});

test("an error with an unknown code does not decode to a RepriseError", () => {
  for (const code of ["NOPE", "toString", "__proto__"]) {
    const back = decode(`{"$":"error","v":{"code":"${code}","message":"x","name":"RepriseError"}}`);
    expect(back).not.toBeInstanceOf(RepriseError);
    expect(back).toMatchObject({ name: "RepriseError", code });
  }
});

test("an AggregateError keeps its errors in order", () => {
  const back = roundTrip(new AggregateError([new TypeError("a"), 2, undefined], "many"));
  expect(back).toBeInstanceOf(AggregateError);
  expect((back as unknown as AggregateError).errors).toEqual([new TypeError("a"), 2, undefined]);
  expect(roundTrip(Object.assign(new Error("x"), { errors: "none" }))).toMatchObject({ errors: "none" });
  expect(roundTrip(Object.assign(new Error("x"), { name: "AggregateError" }))).not.toBeInstanceOf(AggregateError);
});

test("a stack is never recorded, and the decoded error has none", () => {
  const error = new Error("x");
  error.stack = "Error: x\n    at /secret/place.ts:1:1";
  expect(encode(error)).not.toContain("secret");
  expect(roundTrip(error).stack).toBe("Error: x");
});

test("a failure is always recordable: members that are not data are omitted", () => {
  const error = Object.assign(new Error("broken \ud800 text", { cause: () => 1 }), {
    request: { send() {} },
    status: 503,
    self: undefined as unknown,
  });
  error.self = error;
  Object.defineProperty(error, "secret", {
    enumerable: true,
    get() {
      throw new Error("must not be called");
    },
  });
  const back = roundTrip(error);
  expect(back.message).toBe("broken \ufffd text");
  expect(Object.keys(back)).toEqual(["status"]);
  expect("cause" in back).toBe(false);
  const aggregate = roundTrip(new AggregateError([() => 1, 2], "x")) as unknown as AggregateError;
  expect(aggregate.errors).toEqual([undefined, 2]);
});

test("recorded data cannot replace the name, message or prototype of an error", () => {
  const data = '{"constructor":1,"stack":"s","name":"n","message":"m","cause":2,"kept":3}';
  const back = decode(`{"$":"error","v":{"data":${data},"message":"x","name":"Error"}}`) as Error;
  expect(back.constructor).toBe(Error);
  expect([back.name, back.message, back.stack, back.cause]).toEqual(["Error", "x", "Error: x", undefined]);
  expect(back).toMatchObject({ kept: 3 });
});
