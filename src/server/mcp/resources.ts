// Resources: what an agent can read by an address: documents of the package, runs and definitions.
//
//   reprise://docs/{page}                  a document; `?part=2` of one that is longer than an answer
//   reprise://runs/{id}                    a run
//   reprise://runs/{id}/journal            the newest entries of its journal
//   reprise://runs/{id}/state/{step}       the state of a graph after a step
//   reprise://definitions/{name}           a definition
//
// resources.R1. A resource of a run or definition is an operation of the API, under the role and the scopes of the caller.

import { RepriseError } from "../../base/index.ts";
import type { OperationInput } from "./call-operation.ts";
import { listDocuments, readDocument, type PackageDocument } from "./documents.ts";
import { fitAnswer, MAX_ANSWER_BYTES } from "./fit-answer.ts";
import { RPC_ERROR, RpcRefusal, type Params } from "./rpc.ts";
import type { ToolCall } from "./tool.ts";

const PAGE = 100;

export class Resources {
  #documents: readonly PackageDocument[] | undefined;

  documents(): readonly PackageDocument[] {
    return (this.#documents ??= listDocuments());
  }

  list({ cursor }: Params): object {
    const from = cursor === undefined ? 0 : Number(cursor);
    if (!Number.isSafeInteger(from) || from < 0 || (cursor !== undefined && typeof cursor !== "string"))
      throw new RpcRefusal(RPC_ERROR.params, "cursor: expected the nextCursor of the page before.");
    const next = from + PAGE;
    return {
      resources: this.documents()
        .slice(from, next)
        .map(({ uri, path, title, description }) => ({
          uri,
          name: path,
          title,
          description,
          mimeType: mimeOf(path),
        })),
      ...(next < this.documents().length && { nextCursor: String(next) }),
    };
  }

  templates(): object {
    return { resourceTemplates: TEMPLATES };
  }

  async read({ uri }: Params, call: ToolCall): Promise<object> {
    if (typeof uri !== "string") throw new RpcRefusal(RPC_ERROR.params, "uri: expected a text.");
    const found = this.#readDocument(uri) ?? (await readOperation(uri, call));
    if (found === undefined) throw resourceNotFound(uri);
    return { contents: [{ uri, ...found }] };
  }

  /** documents.D1 */
  #readDocument(uri: string): Content | undefined {
    const [, address = uri, part = "1"] = /^([^?]*)\?part=([1-9]\d{0,3})$/.exec(uri) ?? [];
    const document = this.documents().find((one) => one.uri === address);
    if (document === undefined) return undefined;
    const parts = partsOf(readDocument(document));
    const text = parts[Number(part) - 1];
    if (text === undefined) return undefined;
    const next = Number(part) < parts.length ? `\n\n(The next part: ${address}?part=${Number(part) + 1})\n` : "";
    return { mimeType: mimeOf(document.path), text: `${text}${next}` };
  }
}

interface Content {
  readonly mimeType: string;
  readonly text: string;
}

const PART_BYTES = MAX_ANSWER_BYTES - 256;

/** A document in parts of whole lines. */
function partsOf(text: string): readonly string[] {
  if (Buffer.byteLength(text) <= MAX_ANSWER_BYTES) return [text];
  const parts: string[] = [];
  let [part, bytes] = ["", 0];
  for (const line of text.split(/(?<=\n)/)) {
    const size = Buffer.byteLength(line);
    if (bytes + size > PART_BYTES && part !== "") {
      parts.push(part);
      [part, bytes] = ["", 0];
    }
    part += line;
    bytes += size;
  }
  return [...parts, part];
}

interface Addressed {
  readonly operation: string;
  readonly input: OperationInput;
  readonly rest: string;
}

const JOURNAL_ENTRIES = 50;

function addressedBy(uri: string): Addressed | undefined {
  const [, noun, first, part, step] =
    /^reprise:\/\/(runs|definitions)\/([^/?#]+)(?:\/(journal|state)(?:\/(\d{1,9}))?)?$/.exec(uri) ?? [];
  const name = first === undefined ? undefined : decoded(first);
  if (name === undefined || (part === "state") !== (step !== undefined)) return undefined;
  if (noun === "definitions")
    return part === undefined
      ? { operation: "getDefinition", input: { params: { name } }, rest: "The tool `definitions` has less of each." }
      : undefined;
  const params = { id: name };
  const rest = "The tool `run_journal` reads the run in pages.";
  switch (part) {
    case undefined:
      return { operation: "getRun", input: { params }, rest };
    case "journal":
      return { operation: "listJournal", input: { params, query: { limit: JOURNAL_ENTRIES, order: "last" } }, rest };
    default:
      return { operation: "getState", input: { params, query: { step } }, rest };
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** resources.R1 */
async function readOperation(uri: string, { operations, caller, signal }: ToolCall): Promise<Content | undefined> {
  const addressed = addressedBy(uri);
  if (addressed === undefined) return undefined;
  const { operation, input, rest } = addressed;
  try {
    const answer = await operations.call(operation, caller, input, signal);
    return { mimeType: "application/json", text: JSON.stringify(fitAnswer(answer, rest)) };
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    if (error.code.endsWith("_NOT_FOUND") || error.code === "UNKNOWN_DEFINITION") return undefined;
    if (error.code === "INVARIANT") throw error;
    throw new RpcRefusal(RPC_ERROR.params, `${error.code}: ${error.message}`);
  }
}

/** The code of a resource that does not exist: another one until 2025-11-25 (rpc.ts). */
export class ResourceNotFound extends RpcRefusal {}

function resourceNotFound(uri: string): ResourceNotFound {
  return new ResourceNotFound(RPC_ERROR.params, `There is no resource ${uri.slice(0, 200)}.`, { uri });
}

const MARKDOWN = "text/markdown";
const JSON_TYPE = "application/json";

const TEMPLATES = [
  template("docs/errors/{code}.md", "error", "Error code", "What an error code means and what to do next.", MARKDOWN),
  template(
    "docs/guides/{name}.md",
    "guide",
    "Guide",
    "A guide by topic; reprise://docs/llms.txt lists them.",
    MARKDOWN,
  ),
  template("runs/{id}", "run", "Run", "A run: status, input and output, what it waits for.", JSON_TYPE),
  template("runs/{id}/journal", "journal", "Journal of a run", "The newest entries of a run's journal.", JSON_TYPE),
  template(
    "runs/{id}/state/{step}",
    "state",
    "State of a graph",
    "The state of a graph's run after a step.",
    JSON_TYPE,
  ),
  template("definitions/{name}", "definition", "Definition", "Versions, ports, the schema of the input.", JSON_TYPE),
];

function template(path: string, name: string, title: string, description: string, mimeType: string): object {
  return { uriTemplate: `reprise://${path}`, name, title, description, mimeType };
}

function mimeOf(path: string): string {
  return path.endsWith(".md") ? MARKDOWN : "text/plain";
}
