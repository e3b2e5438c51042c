// What a function says of itself to people: its name, or its text where that is one short expression.

const MAX_TEXT = 60;

/** A function that was given in place has no name; one that is a single expression says itself what it decides. */
export function functionWords(deciding: Function): string | null {
  if (deciding.name !== "") return deciding.name;
  const source = Function.prototype.toString.call(deciding);
  const arrow = source.startsWith("function") ? -1 : source.indexOf("=>");
  const text =
    arrow === -1
      ? "{"
      : source
          .slice(arrow + 2)
          .replace(/\s+/g, " ")
          .trim();
  return text.startsWith("{") || text.length > MAX_TEXT ? null : text;
}
