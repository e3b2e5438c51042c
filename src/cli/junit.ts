// JUnit: verdicts as a JUnit XML file, which CI systems show: a test case per run.

import type { Finding } from "../receipts/index.ts";
import { showValue } from "./text.ts";
import { nameOf } from "./verify-report.ts";
import type { VerifiedRun } from "./verify-stored-run.ts";

/** The text of the file. A run that is not verified is a failure that names its first difference. */
export function junitText(verified: readonly VerifiedRun[]): string {
  const failed = verified.filter(({ verdict }) => verdict.status !== "verified").length;
  const counts = `tests="${verified.length}" failures="${failed}" errors="0" skipped="0"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="reprise verify" ${counts}>`,
    ...verified.flatMap(caseLines),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function caseLines(run: VerifiedRun): readonly string[] {
  const { verdict, definition } = run;
  const open = `    <testcase name="${escaped(nameOf(run))}" classname="${escaped(definition)}"`;
  if (verdict.status === "verified") return [`${open}/>`];
  const { status, message } = verdict;
  return [
    `${open}>`,
    `      <failure type="${status}" message="${escaped(message)}">${escaped(detailOf(verdict))}</failure>`,
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
