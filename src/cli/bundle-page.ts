// Bundle page: a bundle as one HTML file that shows its runs and checks itself (page-check.ts).
//
// bundle-page.B1. The lines are in the page as they are, except that `<` is written as `\u003c`: no text of a payload can end the
//   element they are in. `\u003c` occurs in no canonical text, so the lines can be read back byte for byte.
// bundle-page.B2. The page loads nothing: its policy allows its own script and style by their digests, and no request.

import { createHash } from "node:crypto";
import { readLines, type BundleInput } from "../receipts/index.ts";
import { CHECK_SCRIPT } from "./page-check.ts";
import { STYLE, VIEW_SCRIPT } from "./page-view.ts";

export const PAGE_HEAD = "<!doctype html>\n<!-- reprise bundle -->";
const LINES_BEGIN = '<script type="text/plain" id="bundle">';
const LINES_END = "</script>";

/** The page around the lines. `vkey`: undefined for a bundle without a signature. */
export async function* bundlePage(lines: AsyncIterable<string>, vkey: string | undefined): AsyncGenerator<string> {
  const script = `${CHECK_SCRIPT}${VIEW_SCRIPT}`;
  yield `${PAGE_HEAD}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '${digestOf(script)}'; style-src '${digestOf(STYLE)}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
${vkey === undefined ? "" : `<meta name="vkey" content="${vkey}">\n`}<title>Bundle · Reprise</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Reprise bundle</h1>
<p id="verdict" role="status">Checking…</p>
<main></main>
<footer>This page is for reading. The proof is in its lines: <code>reprise verify</code> checks them, also the claim.</footer>
${LINES_BEGIN}
`;
  // bundle-page.B1
  for await (const line of lines) yield line.replaceAll("<", "\\u003c");
  yield `${LINES_END}
<script>${script}</script>
</body>
</html>`;
}

/** The lines of a bundle in a page, as bytes. */
export async function* pageLines(page: BundleInput): AsyncGenerator<Buffer> {
  let isInside = false;
  for await (const { value } of readLines(page))
    if (isInside) {
      if (value === LINES_END) return;
      yield Buffer.from(`${value.replaceAll(/\\(?:u003c|[^])/g, (found) => (found === "\\u003c" ? "<" : found))}\n`);
    } else isInside = value === LINES_BEGIN;
}

/** bundle-page.B2 */
function digestOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
