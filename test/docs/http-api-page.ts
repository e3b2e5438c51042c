// The page docs/reference/http-api.md, generated from the table of operations.

import type { JsonSchema, Operation } from "../../src/contract/index.ts";
import { OPERATIONS } from "../../src/server/operations.ts";

export function httpApiPage(): string {
  const groups = Map.groupBy(OPERATIONS, ({ operation }) => operation.group);
  const sections = [...groups].flatMap(([group, operations]) => [
    `## ${group}`,
    "",
    "| request | role | what it does |",
    "|---|---|---|",
    ...operations.map(({ operation }) => row(operation)),
    "",
  ]);
  return [
    "# HTTP API",
    "",
    "Every request that a server of Reprise answers, by noun. `GET /openapi.json` has the schemas and examples; the [guide](../guides/http-api.md) has the conventions. A role includes those before it: viewer, reader, approver, operator, admin. Parameters in brackets are of the query, fields in braces of the body; `?` marks optional ones.",
    "",
    ...sections,
    "`UPDATE_DOCS=1 npm test -- test/docs` generates this page from the operations in `src/contract`.",
    "",
  ].join("\n");
}

function row({ method, path, role, summary, query, body }: Operation): string {
  const names = [
    ...(query === undefined ? [] : [`[${fieldsOf(query)}]`]),
    ...(body === undefined ? [] : [`{${fieldsOf(body)}}`]),
  ].filter((text) => text.length > 2);
  return `| \`${method} ${path}\`${names.length === 0 ? "" : `<br>${names.join(" ")}`} | ${role} | ${summary.replaceAll("|", "\\|")} |`;
}

/** The fields that a schema names; of several forms, those of each. */
function fieldsOf(schema: JsonSchema): string {
  const {
    anyOf,
    properties = {},
    required = [],
  } = schema as {
    readonly anyOf?: readonly JsonSchema[];
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
  if (anyOf !== undefined) return anyOf.map(fieldsOf).join(" or ");
  return Object.keys(properties)
    .map((name) => (required.includes(name) ? name : `${name}?`))
    .join(", ");
}
