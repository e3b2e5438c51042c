// The pages docs/errors/<CODE>.md: the texts of the catalogue, with explanations written by hand.

import { ERROR_CATALOGUE, type ErrorCode } from "../../src/base/index.ts";
import { FAMILIES } from "./errors-page.ts";

export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[];

const HEADINGS = ["What happened", "Why", "What to do next", "Example"] as const;

function whoMustAct(code: ErrorCode): string {
  return `**Who must act:** ${FAMILIES[ERROR_CATALOGUE[code].family]}.`;
}

/** A draft for a new code. */
export function newErrorPage(code: ErrorCode): string {
  const { summary, next } = ERROR_CATALOGUE[code];
  return [
    `# ${code}`,
    whoMustAct(code),
    "## What happened",
    summary,
    "## Why",
    "The message names the value, the run or the file.",
    "## What to do next",
    next,
    "## Example",
    `\`\`\`text\nerror ${code}: ${summary}\n\`\`\`\n`,
  ].join("\n\n");
}

/** By heading, in the order of the page. */
function sectionsOf(page: string): ReadonlyMap<string, string> {
  return new Map(
    page
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [heading = "", ...rest] = section.split("\n");
        return [heading, rest.join("\n").trim()];
      }),
  );
}

/** The problems of a page. It must contain `summary` and `next` of the catalogue word for word. */
export function problemsOfErrorPage(code: ErrorCode, page: string): string[] {
  const { summary, next } = ERROR_CATALOGUE[code];
  const sections = sectionsOf(page);
  const problems: string[] = [];
  const check = (isFine: boolean, problem: string): void => void (isFine || problems.push(`${code}.md: ${problem}`));
  check(page.startsWith(`# ${code}\n\n${whoMustAct(code)}\n`), `begin with "# ${code}" and "${whoMustAct(code)}"`);
  check([...sections.keys()].join() === HEADINGS.join(), `expected the headings ${HEADINGS.join(", ")}`);
  for (const [heading, text] of sections) check(text !== "", `the section ${heading} is empty`);
  check(sections.get("What happened")?.startsWith(summary) === true, `"What happened" must begin with: ${summary}`);
  check(sections.get("What to do next")?.startsWith(next) === true, `"What to do next" must begin with: ${next}`);
  check(
    sections.get("Example")?.startsWith(`\`\`\`text\nerror ${code}: `) === true,
    `the example must begin with "error ${code}: "`,
  );
  return problems;
}
