// Store URLs of every driver: their options and hosts.

import { expect, test } from "vitest";
import { RepriseError } from "../../src/base/index.ts";
import { addressOf as mysqlAddress } from "../../src/stores/mysql/address.ts";
import { addressOf as postgresAddress } from "../../src/stores/postgres/address.ts";
import { splitHosts, withEachHost } from "../../src/stores/remote/hosts.ts";
import { shownUrl, sqlitePathOf, storeOf } from "../../src/stores/store-url.ts";

function refusal(url: string): RepriseError {
  try {
    storeOf(url);
  } catch (error) {
    if (error instanceof RepriseError) return error;
    throw error;
  }
  throw new Error(`${url} was taken`);
}

test.each([
  ["postgres://h/x?sslmod=require", '"sslmod"', "sslmode"],
  ["postgres://h/x?application_name=shop", '"application_name"', "schema"],
  ["postgres://a,b/x?channel_binding=require", '"channel_binding"', "target_session_attrs"],
  ["mysql://h/x?ssl=true", '"ssl"', "tls"],
  ["mysql://a,b/x?sslmode=require", '"sslmode"', "tls"],
])("%s is refused with the name of the option and the known options", (url, named, known) => {
  const { code, message } = refusal(url);
  expect(code).toBe("BAD_STORE_URL");
  expect(message).toContain(`unknown option ${named}`);
  expect(message).toMatch(new RegExp(`use one of: .*\\b${known}\\b`));
});

test.each([
  "sqlite:shop.db?mode=ro",
  "sqlite://shop.db?cache=shared",
  "sqlite::memory:?x=1",
  "sqlite:shop.db?",
  "sqlite:shop.db?mkdir=0",
  "sqlite:shop.db?mkdir=1&mode=ro",
])("%s is refused: the only option of a SQLite URL is mkdir", (url) => {
  expect(refusal(url)).toMatchObject({ code: "BAD_STORE_URL" });
  expect(refusal(url).message).toContain("The only option of a sqlite: URL is ?mkdir=1");
});

test("the option mkdir is not a part of the path", () => {
  expect(sqlitePathOf("sqlite:data/shop.db?mkdir=1")).toBe("data/shop.db");
  expect(sqlitePathOf("sqlite://data/what%3F.db?mkdir=1")).toBe("data/what?.db");
});

test("a question mark in a file name is written as %3F", () => {
  expect(() => storeOf("sqlite://what%3F.db")).not.toThrow();
});

test.each([
  "postgres://h/x?sslmode=maybe",
  "postgres://h/x?sslmode=require&sslmode=disable",
  "postgres://h/x?sslrootcert=/ca.pem",
  "postgres://h/x?sslmode=disable&sslrootcert=/ca.pem",
  "postgres://h/x?sslmode=require&sslcert=/c.pem",
  "postgres://h/x?sslmode=verify-ca",
  "postgres://h/x?connect_timeout=0",
  "postgres://h/x?connect_timeout=soon",
  "postgres://h/x?target_session_attrs=standby",
  "postgres://h/x?target_session_attrs=prefer-standby",
  "postgres://h/x?target_session_attrs=read-only",
  "postgres://a,b/x?target_session_attrs=any",
  "postgres://a,,b/x",
  "postgres://a:port,b/x",
  "postgres://a,b/x?host=/run/postgresql",
  "postgres://a,b/x?port=5433",
  "mysql://h/x?tls=on",
  "mysql://a,/x",
  "mysql://a,b/x?socket=/run/mysqld.sock",
  "mysql://a,b",
])("%s is refused", (url) => {
  expect(refusal(url).code).toBe("BAD_STORE_URL");
});

test("a URL can have several hosts, and a comma in a password is no separator", () => {
  const password = "s,e@";
  const { hosts, location } = postgresAddress(`postgres://shop:s%2Ce%40@a:5432,b:5433,[::1]:5434/shop?schema=s2`);
  expect(hosts.all.map((url) => new URL(url).host)).toEqual(["a:5432", "b:5433", "[::1]:5434"]);
  expect(hosts.all.map((url) => decodeURIComponent(new URL(url).password))).toEqual([password, password, password]);
  expect(location).toBe("postgres://shop@a:5432,b:5433,[::1]:5434/shop?schema=s2");
  expect(postgresAddress("postgres://shop:s,e@a/shop").hosts.all).toHaveLength(1);
  const mysql = mysqlAddress("mysql://shop:s,e@a,b:3307,[::1]/shop");
  expect(mysql.hosts.all).toEqual([
    { name: "a", port: 3306 },
    { name: "b", port: 3307 },
    { name: "::1", port: 3306 },
  ]);
  expect(mysql.location).toBe("mysql://shop@a,b:3307,[::1]/shop");
});

test("a URL with several hosts is shown without its password", () => {
  expect(shownUrl("postgres://shop:secret@a:1,b:2/shop?schema=s")).toBe("postgres://shop@a:1,b:2/shop?schema=s");
  expect(refusal("postgres://shop:secret@a:1,b:x/shop").message).not.toContain("secret");
});

test("hosts are split and joined without loss", () => {
  const url = "postgres://u:p@a:1,b:2";
  expect(splitHosts(url)).toEqual(["postgres://u:p@a:1", "postgres://u:p@b:2"]);
  expect(withEachHost(`${url}/x`, (each) => each.searchParams.set("schema", "s"))).toBe(`${url}/x?schema=s`);
  expect(withEachHost("postgres:///x?host=/run", (each) => (each.pathname = "/y"))).toBe("postgres:///y?host=/run");
});
