// Page style: the look of the pages that work without the dashboard: an approval link, and signing in. The tokens are those of the
// dashboard (web/src/tokens.css); the text is inline, so that a page is one answer.

import { hash } from "node:crypto";

export const PAGE_STYLE = `
:root{color-scheme:light;--bg:#f8f8f6;--surface:#fff;--sunken:#f2f2ef;--line:#e5e4df;--line-2:#d0cfc8;--control:#8b8980;--text:#1c1b18;--text-2:#55534b;--text-3:#6b6960;--accent:#4a44c6;--on-accent:#fff;--completed:#17703f;--completed-tint:#e5f4ea;--failed:#b8252a;--failed-tint:#fdeceb;--idle:#605e56;--idle-tint:#eeede9;--shadow:0 1px 2px rgb(28 27 24 / .05);--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;--mono:ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace}
@media (prefers-color-scheme:dark){:root{color-scheme:dark;--bg:#121211;--surface:#1a1a18;--sunken:#151514;--line:#2c2b28;--line-2:#403f3a;--control:#7d7b72;--text:#eeede8;--text-2:#b9b7ae;--text-3:#98968c;--accent:#6a63ea;--on-accent:#fff;--completed:#62cb92;--completed-tint:#142b1f;--failed:#ff8a84;--failed-tint:#391c1b;--idle:#aaa89f;--idle-tint:#262623;--shadow:none}}
*{box-sizing:border-box}
html{font:100%/1 var(--sans);background:var(--bg);color:var(--text);-webkit-text-size-adjust:100%}
body{margin:0;font-size:.8125rem;line-height:1.4;font-variant-numeric:tabular-nums}
h1,h2,p,dl,dd,pre,ul{margin:0;padding:0}
h1{font-size:1.125rem;font-weight:600;letter-spacing:-.012em;line-height:1.3;overflow-wrap:anywhere;white-space:pre-wrap}
h2{font-size:.6875rem;font-weight:500;color:var(--text-3)}
header{display:flex;align-items:center;gap:8px;height:48px;padding:0 24px;background:var(--surface);border-bottom:1px solid var(--line);font-weight:650;letter-spacing:-.015em;font-size:.875rem}
main{max-width:600px;margin:0 auto;padding:24px 16px 32px}
.card{background:var(--surface);border:1px solid var(--line);border-radius:10px;box-shadow:var(--shadow)}
.card>*{padding:16px;border-bottom:1px solid var(--line)}
.card>:last-child{border-bottom:0}
.stack>*+*{margin-top:8px}
.text{overflow-wrap:anywhere;white-space:pre-wrap}
.soft{color:var(--text-2)}
.muted{color:var(--text-3);font-size:.75rem}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 16px}
dt{color:var(--text-3)}
dd{overflow-wrap:anywhere;white-space:pre-wrap}
.mono,pre{font-family:var(--mono);font-size:.75rem;font-variant-ligatures:none}
pre{max-height:360px;overflow:auto;padding:10px 12px;background:var(--sunken);border:1px solid var(--line);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
label{display:block;font-size:.6875rem;font-weight:500;color:var(--text-3)}
textarea,input{display:block;width:100%;margin-top:6px;padding:8px 10px;font:inherit;color:inherit;background:var(--surface);border:1px solid var(--control);border-radius:6px}
textarea{min-height:60px;resize:vertical}
.acts{display:flex;flex-wrap:wrap;gap:8px;margin-top:12px}
button,.btn{display:inline-flex;align-items:center;justify-content:center;height:36px;padding:0 16px;font:inherit;font-weight:500;color:var(--text);background:var(--surface);border:1px solid var(--line-2);border-radius:6px;cursor:pointer;text-decoration:none;box-shadow:var(--shadow)}
button:hover{background:var(--sunken)}
.primary{color:var(--on-accent);background:var(--accent);border-color:var(--accent)}
.primary:hover{background:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.verdict{display:inline-flex;align-items:center;gap:8px;padding:4px 10px;border-radius:6px;font-weight:600}
.verdict svg{flex:none}
.yes{color:var(--completed);background:var(--completed-tint)}
.no{color:var(--failed);background:var(--failed-tint)}
.off{color:var(--idle);background:var(--idle-tint)}
.error{color:var(--failed)}
@media (max-width:480px){header{padding:0 16px}.acts>*{flex:1}dl{grid-template-columns:minmax(0,1fr);gap:0}dd{margin-bottom:8px}}
`;

/** For `style-src` of the page's policy. */
export const PAGE_STYLE_HASH = `sha256-${hash("sha256", PAGE_STYLE, "base64")}`;

const BRAND = `<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><circle cx="4" cy="6.3" r="1.6" fill="currentColor"/><circle cx="4" cy="11.7" r="1.6" fill="currentColor"/><path d="M9 2v14" stroke="currentColor" stroke-width="1.4"/><path d="M13.7 2v14" stroke="currentColor" stroke-width="3.4"/></svg>`;

/** A whole page. `main` is HTML whose values went through `escapeHtml`. */
export function pageOf(title: string, main: string, script = ""): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex, nofollow"><title>${escapeHtml(title)}</title><style>${PAGE_STYLE}</style>${script}</head>
<body><header>${BRAND}Reprise</header><main>${main}</main></body></html>
`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text as HTML, in content and in quoted attributes. Marks that reverse the direction of text are shown as what they are. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll(/[&<>"']/g, (one) => ESCAPES[one]!)
    .replaceAll(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (one) => `\\u${one.charCodeAt(0).toString(16)}`);
}
