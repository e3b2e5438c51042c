// Sign-in page: turns a one-time address or a pasted token into a session.
//
// sign-in-page.P1. The code of a one-time address stands behind `#`: only the script of this page sees it, removes it from the address, and
//   sends it in a body. So it is in no log, no history and no referrer.

import { sizedResponse, type HttpRoute } from "../../http/index.ts";
import { pageOf, PAGE_STYLE_HASH } from "../links/page-style.ts";

const PAGE = pageOf(
  "Sign in",
  `<div class="card"><section class="stack"><h1>Sign in</h1>
<p id="state" class="soft" role="status">Paste a token, or open the one-time address that <span class="mono">reprise dev</span> or <span class="mono">reprise serve</span> prints.</p>
<form id="form" autocomplete="off"><label for="token">Token</label><input id="token" type="password" name="token" autocomplete="off" spellcheck="false" placeholder="rp_…" required maxlength="200">
<div class="acts"><button class="primary">Sign in</button></div></form>
<noscript><p class="error">This page and the dashboard need scripts. The command line does not: <span class="mono">reprise list</span>.</p></noscript></section>
<section class="muted">A token is made with <span class="mono">reprise token create &lt;name&gt; --role operator</span>. The session ends after 12 hours, and with its token.</section></div>`,
  '<script src="login.js" defer></script>',
);

const SCRIPT = `"use strict";
const state = document.getElementById("state");
const form = document.getElementById("form");
const field = document.getElementById("token");
/** Removes the code from the address: neither a reload nor the history may have it. */
function takeCode() {
  const code = location.hash.slice(1);
  if (code !== "") history.replaceState(null, "", location.pathname);
  return code;
}
function start() {
  const code = takeCode();
  if (code !== "") void signIn({ code });
  else field.focus();
}
async function signIn(body) {
  state.className = "soft";
  state.textContent = "Signing in…";
  try {
    const response = await fetch("v1/session", {
      method: "POST",
      headers: { "content-type": "application/json", "x-reprise": "1" },
      body: JSON.stringify(body),
      credentials: "same-origin",
    });
    if (response.ok) {
      location.replace("./");
      return;
    }
    const problem = await response.json();
    state.textContent = problem.code === "TOKEN_REQUIRED" && body.code !== undefined
      ? "This one-time address was used or has expired. Start the command again for a new one, or paste a token."
      : problem.detail;
  } catch {
    state.textContent = "The server does not answer.";
  }
  state.className = "error";
  field.focus();
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const token = field.value.trim();
  field.value = "";
  void signIn({ token });
});
// The address was opened in a tab that shows this page already.
addEventListener("hashchange", start);
start();
`;

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src '${PAGE_STYLE_HASH}'`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The page and its script: for everyone, because they hold no data. */
export function signInRoutes(basePath: string): readonly HttpRoute[] {
  const file = (name: string, type: string, text: string): HttpRoute => ({
    method: "GET",
    path: new RegExp(`^${RegExp.escape(`${basePath}/${name}`)}$`),
    admit: () => ({ name: "anonymous" }),
    handle: () =>
      sizedResponse(text, {
        headers: {
          "content-type": `${type}; charset=utf-8`,
          "content-security-policy": POLICY,
          "cache-control": "no-cache",
        },
      }),
  });
  return [file("login", "text/html", PAGE), file("login.js", "text/javascript", SCRIPT)];
}
