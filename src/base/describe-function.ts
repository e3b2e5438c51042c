// Describe function: a label for diagrams and messages.

const MAX_TEXT = 60;

/** The name of a function; of an anonymous arrow function with one short expression, that expression. */
export function describeFunction(deciding: Function): string | null {
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
