import { expect, test } from "vitest";
import { RequestGuard, type GuardOptions } from "./request-guard.ts";

const ADDRESS = "http://127.0.0.1:7420";

function outcome(call: () => void): string {
  try {
    call();
    return "fine";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** What becomes of a request with these headers, as the listener makes it. */
function hostOutcome(guard: RequestGuard, host: string): string {
  const request = new Request(`${ADDRESS}/v1/runs`, { headers: { host } });
  return outcome(() => guard.checkHost(request, new URL(request.url)));
}

function listening(options: Partial<GuardOptions> = {}): RequestGuard {
  const guard = new RequestGuard({ isOpen: true, ...options });
  guard.addAddress(ADDRESS);
  return guard;
}

test("a listener on a loopback address takes its own names with its own port only", () => {
  const guard = listening();
  for (const host of ["127.0.0.1:7420", "localhost:7420", "LOCALHOST:7420", "[::1]:7420"])
    expect(hostOutcome(guard, host), host).toBe("fine");
  for (const host of [
    "evil.example",
    "evil.example:7420",
    "localhost",
    "localhost:7421",
    "localhost.:7420",
    "localhost:7420.evil.example",
    "127.0.0.1:7420@evil.example",
    "evil.example@127.0.0.1:7420",
    "127.0.0.1:7420/",
    "127.0.0.1:7420#",
    "127.1:7420",
    "0177.0.0.1:7420",
    "2130706433:7420",
    "127.0.0.1:07420",
    "[::ffff:127.0.0.1]:7420",
    "[0:0:0:0:0:0:0:1]:7420",
    "127.0.0.1.nip.io:7420",
    "xn--lcalhost-54a:7420",
    "0.0.0.0:7420",
    ":7420",
    " ",
  ])
    expect(hostOutcome(guard, host), host).toBe("WRONG_HOST");
});

test("a server without tokens that is mounted elsewhere takes loopback names only; one with tokens takes any", () => {
  const open = new RequestGuard({ isOpen: true });
  expect(hostOutcome(open, "localhost:3000")).toBe("fine");
  expect(hostOutcome(open, "app.example.org")).toBe("WRONG_HOST");
  const closed = new RequestGuard({ isOpen: false });
  expect(hostOutcome(closed, "app.example.org")).toBe("fine");
  expect(hostOutcome(closed, "app.example.org/x")).toBe("WRONG_HOST");
});

test("with a public address that one counts, beside the loopback address of the listener", () => {
  const guard = listening({ origin: "https://runs.example.org", isOpen: false });
  expect(hostOutcome(guard, "runs.example.org")).toBe("fine");
  expect(hostOutcome(guard, "127.0.0.1:7420")).toBe("fine");
  expect(hostOutcome(guard, "other.example.org")).toBe("WRONG_HOST");
  expect(guard.publicOrigin()).toBe("https://runs.example.org");
});

test("a server that other machines reach by unknown names takes any name, and one with more names takes those", () => {
  const exposed = new RequestGuard({ isOpen: false });
  exposed.addAddress("http://192.0.2.1:7420");
  expect(hostOutcome(exposed, "runs.example.org")).toBe("fine");
  const named = new RequestGuard({ isOpen: false });
  named.addAddress(ADDRESS, ["hub.example.org:7420"]);
  expect(hostOutcome(named, "hub.example.org:7420")).toBe("fine");
  expect(hostOutcome(named, "runs.example.org:7420")).toBe("WRONG_HOST");
});

test("an origin is compared as a whole, and null is no origin", () => {
  const guard = listening({ cors: ["https://app.example.org"] });
  const check = (origin: string): string => {
    const request = new Request(`${ADDRESS}/v1/runs`, { headers: { origin } });
    return outcome(() => guard.checkOrigin(request, new URL(request.url)));
  };
  for (const origin of [ADDRESS, "http://localhost:7420", "https://app.example.org"])
    expect(check(origin), origin).toBe("fine");
  for (const origin of [
    "null",
    "https://127.0.0.1:7420",
    "http://127.0.0.1",
    "http://localhost:3000",
    "http://app.example.org",
    "https://app.example.org.evil.example",
    "https://app.example.org:8443",
    "https://APP.example.org",
    "https://app.example.org https://evil.example",
    "file://",
  ])
    expect(check(origin), origin).toBe("WRONG_ORIGIN");
});

test("authority that a browser adds by itself counts only for requests that no other page can make", () => {
  const guard = listening();
  const check = (method: string, headers: Record<string, string>): string => {
    const request = new Request(`${ADDRESS}/v1/runs`, { method, headers });
    return outcome(() => guard.checkAmbient(request, new URL(request.url)));
  };
  expect(check("GET", {})).toBe("fine");
  expect(check("POST", { "x-reprise": "1" })).toBe("fine");
  expect(check("POST", {})).toBe("WRONG_ORIGIN");
  expect(check("POST", { "x-reprise": "2" })).toBe("WRONG_ORIGIN");
  expect(check("DELETE", { "x-reprise": "1", origin: "null" })).toBe("WRONG_ORIGIN");
  expect(check("GET", { "sec-fetch-site": "same-origin" })).toBe("fine");
  expect(check("GET", { "sec-fetch-site": "same-site" })).toBe("WRONG_ORIGIN");
  expect(check("GET", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toBe("WRONG_ORIGIN");
  const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
  expect(check("GET", link)).toBe("fine");
  expect(check("GET", { ...link, "sec-fetch-dest": "iframe" })).toBe("WRONG_ORIGIN");
  expect(check("POST", { ...link, "x-reprise": "1" })).toBe("WRONG_ORIGIN");
});

test("only a named origin gets an answer to a preflight, and never with credentials", () => {
  const guard = listening({ cors: ["https://app.example.org"] });
  const preflight = (origin: string): Response | undefined =>
    guard.preflight(
      new Request(`${ADDRESS}/v1/runs`, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST" },
      }),
    );
  expect(preflight("https://evil.example")).toBeUndefined();
  const answer = preflight("https://app.example.org");
  expect(answer?.headers.get("access-control-allow-origin")).toBe("https://app.example.org");
  expect(answer?.headers.get("access-control-allow-credentials")).toBeNull();
  expect(answer?.headers.get("access-control-allow-headers")).toContain("authorization");
  const read = (origin: string): Readonly<Record<string, string>> =>
    guard.corsHeaders(new Request(`${ADDRESS}/v1/runs`, { headers: { origin } }));
  expect(read("https://evil.example")).toEqual({ vary: "origin" });
  expect(read("https://app.example.org")["access-control-allow-origin"]).toBe("https://app.example.org");
});

test("an origin in the options that no browser would send is refused", () => {
  for (const origin of [
    "runs.example.org",
    "https://runs.example.org/x",
    "ftp://runs.example.org",
    "*",
    "https://u@h.example",
  ])
    expect(
      outcome(() => void new RequestGuard({ origin, isOpen: false })),
      origin,
    ).toBe("BAD_OPTIONS");
});
