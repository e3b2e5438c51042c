// The outside services: a scripted model, three tools and a mailbox. All offline; every call appends a line to the ledger.

import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export interface Message {
  readonly role: "user" | "model" | "tool" | "person";
  readonly text: string;
}
export interface ToolCall {
  readonly tool: "search" | "calculate" | "refund";
  readonly text: string;
}
export interface Reply {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly answer: string | null;
}

/** What an outside call knows about its caller. */
interface Caller {
  readonly runId: string;
  readonly idempotencyKey: string;
}

/** A line of the ledger: a call that the outside received, even if the calling process died. */
export interface LedgerLine {
  readonly run: string;
  readonly what: string;
  readonly key: string;
}

function note(what: string, { runId, idempotencyKey }: Caller): void {
  const ledger = process.env["LEDGER"];
  const line: LedgerLine = { run: runId, what, key: idempotencyKey };
  if (ledger !== undefined) appendFileSync(ledger, `${JSON.stringify(line)}\n`);
}

/** The model: its answer follows from the last message, as in a script. Call a real model here. */
export async function askModel(messages: readonly Message[], op: Caller): Promise<Reply> {
  note("llm", op);
  const last = messages.at(-1) ?? { role: "user", text: "" };
  const found = (word: string): string => messages.findLast(({ text }) => text.startsWith(word))?.text ?? "";
  const say = (text: string, ...calls: ToolCall[]): Reply => ({ text, calls, answer: null });
  if (last.role === "user")
    return say("I look it up.", { tool: "search", text: "1042" }, { tool: "search", text: "policy" });
  if (last.role === "person") return end(`I may not do that myself: a colleague will handle it. (${last.text})`);
  if (found("refunded") !== "") return end(`Done: ${found("refunded")}. Sorry for the trouble.`);
  if (found("=") !== "") return say("That much is too much.", { tool: "refund", text: found("=").slice(2) });
  return say("I add it up.", { tool: "calculate", text: "3 * 24.95 - 24.95" });
}

function end(answer: string): Reply {
  return { text: answer, calls: [], answer };
}

/** A refund moves money, so a person must approve it. */
export function isDangerous({ tool }: ToolCall): boolean {
  return tool === "refund";
}

export async function useTool({ tool, text }: ToolCall, op: Caller): Promise<string> {
  note(tool, op);
  if (tool === "search") return search(text);
  if (tool === "calculate") return `= ${calculate(text)}`;
  // A slow bank. It makes one refund per key, however often it is called.
  await pause(Number(process.env["BANK_MS"] ?? 0));
  return `refunded ${text} EUR`;
}

function search(word: string): string {
  const lines = readFileSync(new URL("./notes.txt", import.meta.url), "utf8").split("\n");
  return lines.find((line) => line.toLowerCase().includes(word)) ?? "nothing found";
}

/** Sums of products. */
function calculate(expression: string): string {
  const terms = expression.replaceAll(" ", "").match(/[+-]?[^+-]+/g) ?? [];
  const product = (term: string): number => term.split("*").reduce((result, factor) => result * Number(factor), 1);
  return terms.reduce((sum, term) => sum + product(term), 0).toFixed(2);
}

/** Delivers messages of the outbox: at least once, with the same key every time. */
export async function deliverMail(_payload: unknown, dedupKey: string): Promise<void> {
  note("mail", { runId: "", idempotencyKey: dedupKey });
}
