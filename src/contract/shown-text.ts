// Shown text: which fields of what a promise shows are its title and its reason. One rule for the dashboard and for approval links. Pure.

const TITLES = ["title", "question", "text", "summary"];
const WHYS = ["why", "reason", "description", "detail", "text"];

type Fields = Readonly<Record<string, unknown>>;

export interface ShownText {
  readonly title?: string;
  readonly why?: string;
  /** The other fields, in their order. */
  readonly rest: readonly (readonly [string, unknown])[];
}

/** The first field that is a text and reads like a title, and the first one that reads like a reason. */
export function shownText(show: Fields): ShownText {
  const call = toolCall(show);
  if (call !== undefined) return call;
  const titleField = TITLES.find((field) => isText(show, field));
  const whyField = WHYS.find((field) => field !== titleField && isText(show, field));
  return {
    ...(titleField !== undefined && { title: show[titleField] as string }),
    ...(whyField !== undefined && { why: show[whyField] as string }),
    rest: Object.entries(show).filter(([field]) => field !== titleField && field !== whyField),
  };
}

/** What an agent shows about a call of a tool: `{ tool, input }`. */
function toolCall(show: Fields): ShownText | undefined {
  const { tool, input } = show;
  if (Object.keys(show).toSorted().join() !== "input,tool" || typeof tool !== "string") return undefined;
  const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
  return { title: `Call the tool ${tool}`, rest: isObject ? Object.entries(input) : [["input", input]] };
}

function isText(show: Fields, field: string): boolean {
  return Object.hasOwn(show, field) && typeof show[field] === "string" && show[field].trim() !== "";
}
