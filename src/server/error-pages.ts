// Error pages: `errors/<code>`, the `type` of a problem: what the code means and what helps, as text.

import { existsSync, readFileSync } from "node:fs";
import { ERROR_CATALOGUE, isErrorCode, RepriseError } from "../base/index.ts";
import { pathPattern, sizedResponse, type HttpRoute } from "../http/index.ts";

/** The route of the pages, for every caller: they hold no data. */
export function errorPageRoute(basePath: string): HttpRoute {
  return {
    method: "GET",
    path: pathPattern(`${basePath}/errors/{code}`),
    admit: () => ({ name: "anonymous" }),
    handle: ({ params: { code = "" } }) => {
      if (!isErrorCode(code))
        throw new RepriseError("USAGE", `There is no error code ${code.slice(0, 50)}.`, { details: { status: 404 } });
      return sizedResponse(pageOf(code), { headers: { "content-type": "text/markdown; charset=utf-8" } });
    },
  };
}

function pageOf(code: keyof typeof ERROR_CATALOGUE): string {
  const file = new URL(`../../docs/errors/${code}.md`, import.meta.url);
  if (existsSync(file)) return readFileSync(file, "utf8");
  const { summary, next } = ERROR_CATALOGUE[code];
  return `# ${code}\n\n${summary}\n\n${next}\n`;
}
