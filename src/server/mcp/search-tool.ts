// Search tool: passages of the documents of the package, by words.

import { RepriseError } from "../../base/index.ts";
import { object, text } from "../../contract/index.ts";
import { searchDocuments } from "./documents.ts";
import type { Resources } from "./resources.ts";
import type { McpTool } from "./tool.ts";

const MAX_RESULTS = 5;
const MAX_PASSAGE = 4_000;

export function searchTool(resources: Resources): McpTool {
  return {
    name: "search_docs",
    title: "Search the documents",
    description: "Finds passages of the documents of Reprise by words.",
    inputSchema: object({ query: text({ minLength: 1, maxLength: 500, description: "Words that the passage has." }) }),
    role: "viewer",
    acts: false,
    call({ query }) {
      if (String(query).trim() === "")
        return Promise.reject(
          new RepriseError("BAD_FORMAT", "query: expected some words.", { details: { status: 400 } }),
        );
      const found = searchDocuments(resources.documents(), String(query), MAX_RESULTS);
      const passages = found.map(({ document, passage }) => `${document.uri}\n${passage.slice(0, MAX_PASSAGE)}`);
      return Promise.resolve(passages.length === 0 ? "Nothing was found." : passages.join("\n\n---\n\n"));
    },
  };
}
