// Security headers: what every answer carries, errors and files of the dashboard included.
//
// security-headers.H1. `default-src 'none'`: an answer that a browser shows as a page can load and run nothing. The dashboard adds its own
//   scripts, styles and connections; no answer allows inline scripts, `eval`, style attributes, frames or other origins.
// security-headers.H2. A handler may set a header itself, such as `cache-control` of a file whose name has its hash; what it sets stays.

/** What an answer is, for its policy: data, a page of the dashboard with scripts, or a page without. */
export type AnswerKind = "data" | "dashboard" | "page";

const DATA_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** `trusted-types`: no code of the dashboard turns text into HTML or scripts, so there is no policy to name. */
const DASHBOARD_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** Of a page with no script, whose only style is inline: the hash of its text. */
export function pagePolicy(styleHash: string): string {
  return `default-src 'none'; style-src '${styleHash}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`;
}

/** The headers of an answer. `isSecure`: the server is reached over TLS. */
export function securityHeaders(kind: AnswerKind, isSecure: boolean): Readonly<Record<string, string>> {
  return {
    ...HEADERS,
    "content-security-policy": kind === "dashboard" ? DASHBOARD_POLICY : DATA_POLICY,
    "cache-control": kind === "dashboard" ? "no-cache" : "no-store",
    ...(isSecure && { "strict-transport-security": "max-age=31536000" }),
  };
}

/** security-headers.H2. The same answer with the headers that it does not have yet. */
export function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const missing = Object.entries(headers).filter(([name]) => !response.headers.has(name));
  try {
    for (const [name, value] of missing) response.headers.set(name, value);
    return response;
  } catch {
    // Headers of some answers cannot be changed, such as those of `Response.redirect`.
    const all = new Headers(response.headers);
    for (const [name, value] of missing) all.set(name, value);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers: all });
  }
}
