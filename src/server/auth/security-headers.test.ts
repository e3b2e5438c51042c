import { expect, test } from "vitest";
import { operation } from "../../contract/index.ts";
import type { Logger } from "../../kernel/index.ts";
import { auditLine } from "./audit.ts";
import { pagePolicy, securityHeaders, withHeaders } from "./security-headers.ts";

test("no policy allows inline scripts, eval, other origins or frames", () => {
  for (const policy of [
    ...(["data", "dashboard", "page"] as const).map((kind) => securityHeaders(kind, true)["content-security-policy"]!),
    pagePolicy("sha256-x"),
  ]) {
    expect(policy).toMatch(/^default-src 'none'/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
  }
  expect(securityHeaders("dashboard", false)["content-security-policy"]).toContain(
    "require-trusted-types-for 'script'",
  );
});

test("an answer keeps the headers that its code set, also if its headers cannot be changed", () => {
  const own = withHeaders(
    new Response("x", { headers: { "cache-control": "max-age=9" } }),
    securityHeaders("data", true),
  );
  expect(own.headers.get("cache-control")).toBe("max-age=9");
  expect(own.headers.get("x-content-type-options")).toBe("nosniff");
  expect(own.headers.get("strict-transport-security")).not.toBeNull();
  const redirect = withHeaders(Response.redirect("http://127.0.0.1/x", 302), securityHeaders("data", false));
  expect([redirect.status, redirect.headers.get("location")]).toEqual([302, "http://127.0.0.1/x"]);
  expect(redirect.headers.get("content-security-policy")).toMatch(/default-src 'none'/);
  expect(redirect.headers.get("strict-transport-security")).toBeNull();
});

test("an audit line has the caller, the run and the reason, and neither payload nor link", () => {
  const lines: { message: string; data: object | undefined }[] = [];
  const logger = { info: (message: string, data?: object) => void lines.push({ message, data }) } as Logger;
  const spec = { role: "operator", method: "POST", group: "g", summary: "s", answer: null, example: {} } as const;
  auditLine(logger, {
    name: "settlePromise",
    operation: operation({ ...spec, path: "/v1/runs/{id}/promises/{port}" }),
    caller: { name: "ann", role: "approver" },
    params: { id: "order-1", port: "approval" },
    body: { value: { card: "4111" }, reason: "fine" },
    status: 200,
  });
  auditLine(logger, {
    name: "answerLink",
    operation: operation({ ...spec, path: "/a/{token}" }),
    caller: undefined,
    params: { token: "sealed" },
    body: undefined,
    status: 410,
    code: "LINK_CLOSED",
  });
  expect(lines).toEqual([
    {
      message: "audit settlePromise",
      data: {
        caller: "ann",
        role: "approver",
        run: "order-1",
        port: "approval",
        reason: "fine",
        outcome: "done",
        status: 200,
      },
    },
    {
      message: "audit answerLink",
      data: { caller: "anonymous", outcome: "refused", status: 410, code: "LINK_CLOSED" },
    },
  ]);
});
