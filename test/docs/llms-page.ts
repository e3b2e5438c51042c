// The page llms.txt, generated from the documents: one line each, for coding agents (llmstxt.org).

import { listDocuments, type PackageDocument } from "../../src/server/mcp/documents.ts";

const SECTIONS: readonly (readonly [title: string, folder: RegExp])[] = [
  ["Start here", /^(?:SKILL|README)\.md$|^docs\/tutorial\.md$/],
  ["Guides", /^docs\/guides\//],
  ["Reference", /^docs\/reference\/|^docs\/rules\.md$/],
];

export function llmsPage(): string {
  const documents = listDocuments();
  const sections = SECTIONS.flatMap(([title, folder]) => [
    `## ${title}`,
    "",
    ...documents.filter(({ path }) => folder.test(path)).map(lineOf),
    "",
  ]);
  return [
    "# Reprise",
    "",
    "> A durable, deterministic execution engine for TypeScript: programs that survive crashes, commit every step exactly once, and can be replayed and verified.",
    "",
    "Paths are relative to this file, in the npm package and in the repository. `npx reprise mcp` serves the same documents to coding agents.",
    "",
    ...sections,
    "## Optional",
    "",
    "- [docs/errors](docs/errors): a page per error code, `docs/errors/<CODE>.md`: what happened, why, what to do next.",
    "- [docs/decisions](docs/decisions): why things are as they are, one page per decision.",
    "- [CHANGELOG.md](CHANGELOG.md): what changed in each version.",
    "",
  ].join("\n");
}

function lineOf({ path, title, description }: PackageDocument): string {
  return `- [${title}](${path})${description === "" ? "" : `: ${description}`}`;
}
