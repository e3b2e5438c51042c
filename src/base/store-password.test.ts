import { expect, test } from "vitest";
import { passwordHint, withoutPassword } from "./store-password.ts";

test.each([
  ["postgres://shop:secret@host/shop", "postgres://shop:…@host/shop"],
  ["postgres://shop:se/cr:e@t@host:5432/shop", "postgres://shop:…@host:5432/shop"],
  ["shop:secret@host", "shop:…@host"],
  ["postgres://shop@host/shop", "postgres://shop@host/shop"],
  ["sqlite:shop.db", "sqlite:shop.db"],
])("%s is shown as %s", (address, shown) => {
  expect(withoutPassword(address)).toBe(shown);
});

test("only a password that makes its URL invalid gets a hint", () => {
  expect(passwordHint("postgres://shop:se/cret@host/shop")).toContain("%2F for /");
  expect(passwordHint("postgres://shop:secret@host/shop")).toBe("");
  expect(passwordHint("shop.db")).toBe("");
});
