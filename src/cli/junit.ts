// JUnit: verdicts as a JUnit XML file, which CI systems show: a test case per run.

import type { Finding } from "../receipts/index.ts";
import { showValue } from "./text.ts";
import { nameOf } from "./verify-report.ts";
import type { VerifiedRun } from "./verify-stored-run.ts";

/** A run, and why it is a failure. */
export interface JunitCase {
  readonly name: string;
  readonly classname: string;
  readonly failure?: { readonly type: string; readonly message: string; readonly detail: string } | undefined;
}

/** The text of the file. A run that is not verified is a failure that names its first difference. */
export function junitText(verified: readonly VerifiedRun[]): string {
  return junitSuite(
    "reprise verify",
    verified.map((run) => {
      const { verdict, definition: classname } = run;
      if (verdict.status === "verified") return { name: nameOf(run), classname };
      const { status: type, message } = verdict;
      return { name: nameOf(run), classname, failure: { type, message, detail: detailOf(verdict) } };
    }),
  );
}

export function junitSuite(name: string, cases: readonly JunitCase[]): string {
  const failed = cases.filter(({ failure }) => failure !== undefined).length;
  const counts = `tests="${cases.length}" failures="${failed}" errors="0" skipped="0"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${escaped(name)}" ${counts}>`,
    ...cases.flatMap(caseLines),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function caseLines({ name, classname, failure }: JunitCase): readonly string[] {
  const open = `    <testcase name="${escaped(name)}" classname="${escaped(classname)}"`;
  if (failure === undefined) return [`${open}/>`];
  const { type, message, detail } = failure;
  return [
    `${open}>`,
    `      <failure type="${escaped(type)}" message="${escaped(message)}">${escaped(detail)}</failure>`,
    "    </testcase>",
  ];
}

function detailOf(finding: Finding): string {
  const { where, message } = finding;
  const difference = "difference" in finding ? finding.difference : undefined;
  return [
    message,
    ...(where === undefined ? [] : [`where: ${where}`]),
    ...(difference === undefined
      ? []
      : [`the code: ${showValue(difference.expected)}`, `the journal: ${showValue(difference.actual)}`]),
  ].join("\n");
}

// XML 1.0 has no escape for these characters.
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(NOT_XML, "\ufffd")
    .replace(/[&<>"]/g, (char) => ENTITIES[char]!)
    .replaceAll("\n", "&#10;");
}
