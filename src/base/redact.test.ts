import { expect, test } from "vitest";
import { needlesOf, redactData, redactText, secretKeys } from "./index.ts";

const SECRET = 'k3y "with" / quotes';
const needles = needlesOf([SECRET]);
const isSecret = secretKeys();

test("a secret is found in plain text, in JSON and in a URL", () => {
  expect(redactText(`key ${SECRET}.`, needles)).toBe("key [redacted].");
  expect(redactText(JSON.stringify({ a: SECRET }), needles)).toBe('{"a":"[redacted]"}');
  expect(redactText(`https://x.y/?k=${encodeURIComponent(SECRET)}&z=1`, needles)).toBe("https://x.y/?k=[redacted]&z=1");
});

test("the longer of two secrets is removed first, and short secrets are ignored", () => {
  expect(redactText("abcd-efgh", needlesOf(["abcd", "abcd-efgh", "a", ""]))).toBe("[redacted]");
  expect(redactText("a b c", needlesOf(["a", "b c"]))).toBe("a b c");
});

test("the usual names are secret, and similar names are not", () => {
  const secret = [
    ..."password Password user_password passwd passphrase secret clientSecret client-secret SECRET_KEY".split(" "),
    ..."token access_token accessToken refreshToken id-token apiKey api_key API-KEY x-api-key privateKey".split(" "),
    ..."authorization Proxy-Authorization cookie set-cookie credentials secretAccessKey auth pin jwt".split(" "),
  ];
  expect(secret.filter((key) => !isSecret(key))).toEqual([]);
  const open = "tokens maxTokens nextPageToken tokenCount author authorId cookies? key keys pinned id name".split(" ");
  expect(open.filter((key) => isSecret(key))).toEqual([]);
});

test("custom names ignore case and separators, custom patterns do not", () => {
  const own = secretKeys(["card_number", /^x-internal-/]);
  expect(["cardNumber", "CARD-NUMBER", "x-internal-id", "password"].every(own)).toBe(true);
  expect(["cardNumbers", "X-Internal-id"].some(own)).toBe(false);
});

test("the value of a secret key is hidden, its absence is not", () => {
  const data = { user: "ann", password: "x", token: { a: 1 }, pin: 1234, secret: null, hasSecret: true, apiKey: "" };
  expect(redactData(data, { needles, isSecret })).toEqual({
    user: "ann",
    password: "[redacted]",
    token: "[redacted]",
    pin: "[redacted]",
    secret: null,
    hasSecret: true,
    apiKey: "",
  });
  expect(data.password).toBe("x");
});

test("secrets are found in arrays, maps, sets, errors and their causes; a value without secrets is not copied", () => {
  class Refused extends Error {
    readonly request = { headers: { authorization: "Bearer x" }, url: `/${SECRET}` };
  }
  const error = new Refused(`no ${SECRET}`, { cause: new TypeError(SECRET) });
  const date = new Date(0);
  const clean = { n: 1, list: [1, { a: "b" }], date, map: new Map([[1, 2]]), set: new Set([1]) };
  const data = { clean, list: [SECRET], map: new Map([["password", "x"]]), set: new Set([SECRET]), error };
  const redacted = redactData(data, { needles, isSecret }) as typeof data;
  expect(redacted.clean).toBe(clean);
  expect(redacted.list).toEqual(["[redacted]"]);
  expect(redacted.map).toEqual(new Map([["password", "[redacted]"]]));
  expect(redacted.set).toEqual(new Set(["[redacted]"]));
  expect(redacted.error).toBeInstanceOf(Refused);
  expect(redacted.error.message).toBe("no [redacted]");
  expect(redacted.error.stack).not.toContain(SECRET);
  expect((redacted.error.cause as Error).message).toBe("[redacted]");
  expect(redacted.error.request).toEqual({ headers: { authorization: "[redacted]" }, url: "/[redacted]" });
  expect(error.message).toBe(`no ${SECRET}`);
});

test("a cycle ends, and no getter runs", () => {
  const data: Record<string, unknown> = {
    text: SECRET,
    get boom(): never {
      throw new Error("ran");
    },
  };
  data["self"] = data;
  const redacted = redactData(data, { needles, isSecret }) as typeof data;
  expect([redacted["text"], redacted["self"]]).toEqual(["[redacted]", "[circular]"]);
});
