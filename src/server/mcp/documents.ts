// Documents: the documents of the package, as resources `reprise://docs/…` of MCP.
//
// documents.D1. Only files that the list names can be read: a URI is looked up, never turned into a path.

import { existsSync, readdirSync, readFileSync } from "node:fs";

export interface PackageDocument {
  /** `reprise://docs/guides/workflows.md` */
  readonly uri: string;
  /** Its path in the package. */
  readonly path: string;
  /** Its heading. */
  readonly title: string;
  /** Its first sentence. */
  readonly description: string;
}

/** In dist and in the sources, this folder is three levels below the root of the package. */
const ROOT = new URL("../../../", import.meta.url);
/** At the root of the package, in this order; then everything in `docs`. */
const AT_ROOT = ["llms.txt", "SKILL.md", "README.md", "CHANGELOG.md"];
const FOLDERS = ["docs/", "docs/guides/", "docs/reference/", "docs/errors/", "docs/decisions/"];

export function listDocuments(root = ROOT): readonly PackageDocument[] {
  const paths = [
    ...AT_ROOT,
    ...FOLDERS.flatMap((folder) => namesIn(new URL(folder, root)).map((name) => `${folder}${name}`)),
  ];
  return paths.filter((path) => existsSync(new URL(path, root))).map((path) => describe(root, path));
}

function namesIn(folder: URL): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".md"))
    .toSorted();
}

function describe(root: URL, path: string): PackageDocument {
  const text = readDocument({ path }, root);
  const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
  const uri = `reprise://docs/${path.replace(/^docs\//, "")}`;
  return { uri, path, title: title.trim(), description: firstSentence(text) };
}

export function readDocument({ path }: Pick<PackageDocument, "path">, root = ROOT): string {
  return readFileSync(new URL(path, root), "utf8");
}

const MAX_DESCRIPTION = 240;

/** The first sentence of the first paragraph after the heading, without Markdown. */
export function firstSentence(text: string): string {
  const body = text.slice(text.search(/^# /m)).replace(/^# .*\n/, "");
  const paragraph = body.split(/\n\s*\n/).find((part) => /^[A-Za-z`*[>]/.test(part.trim())) ?? "";
  const plain = paragraph
    .trim()
    .replace(/^>\s*/, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/\*\*|\n/g, (mark) => (mark === "\n" ? " " : ""));
  const [sentence = plain] = /^.*?[.!?](?=\s|$)/.exec(plain) ?? [];
  return sentence.length <= MAX_DESCRIPTION ? sentence : `${sentence.slice(0, MAX_DESCRIPTION - 1)}…`;
}

export interface FoundPassage {
  readonly document: PackageDocument;
  readonly passage: string;
}

/** The passages that have most of the words, best first. */
export function searchDocuments(
  documents: readonly PackageDocument[],
  query: string,
  limit: number,
): readonly FoundPassage[] {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_.]{2,}/gu) ?? [])];
  if (words.length === 0) return [];
  return documents
    .flatMap((document) =>
      passagesOf(readDocument(document)).map((passage) => {
        const text = `${document.title}\n${passage}`.toLowerCase();
        const found = words.filter((word) => text.includes(word));
        // A rare word counts as much as a frequent one; a title counts twice.
        const inTitle = words.filter((word) => document.title.toLowerCase().includes(word));
        const score = found.length * 2 + inTitle.length - passage.length / 10_000;
        // How to use something comes before why it was made so.
        return { document, passage, score: document.uri.includes("/decisions/") ? score / 2 : score };
      }),
    )
    .filter(({ score }) => score >= words.length)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ document, passage }) => ({ document, passage }));
}

/** A document by its headings. */
function passagesOf(text: string): readonly string[] {
  return text.split(/\n(?=#{1,4} )/).map((part) => part.trim());
}
