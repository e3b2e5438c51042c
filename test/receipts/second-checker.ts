// Second checker: reads bundles as docs/reference/receipts.md describes them. JSON, SHA-256 and Ed25519; nothing of this package. It
// derives the claim of a workflow that completed, failed or is open, without messages and retries. Of other claims it checks the key.

import { createHash, createPublicKey, verify } from "node:crypto";

export type Verdict = "fine" | "damaged" | "incomplete" | "untrusted";

const hash = (...parts: any[]): Buffer => parts.reduce((sum, part) => sum.update(part), createHash("sha256")).digest();
const sha = (text: string): string => hash(text).toString("hex");
const size = (text: string): number => Buffer.byteLength(text);
const pae = (type: string, text: string): string => `DSSEv1 ${size(type)} ${type} ${size(text)} ${text}`;
const typeOf = (name: string): string => `application/vnd.reprise.${name}.v1+json`;
const keyOf = (name: string, text: string): string => sha(pae(typeOf(name), text));
const digestOf = (...parts: string[]): string => sha(parts.map((part) => `${size(part)}:${part}`).join(""));
const UTF8 = { fatal: true, ignoreBOM: true };
const HEAD = ["form", "payload", "k", "k"];
const PARTS = ["uses", "evidence", "attempts"];
/** RFC 8785; absent members are left out. */
function jcs(value: any): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${jcs(member)}`).join(",")}}`;
}
/** RFC 6962 */
function rootOf(leaves: readonly string[]): string {
  const node = (from: number, to: number): Buffer => {
    if (to - from === 1) return hash("\0", leaves[from]!);
    const half = 2 ** Math.floor(Math.log2(to - from - 1));
    return hash("\x01", node(from, from + half), node(from + half, to));
  };
  return leaves.length === 0 ? sha("") : node(0, leaves.length).toString("hex");
}
class Problem extends Error {}
function must(condition: boolean, verdict: Verdict = "damaged"): asserts condition {
  if (!condition) throw new Problem(verdict);
}
function parse(line: string): any {
  const value = JSON.parse(line);
  must(typeof value === "object" && value !== null && line === jcs(value));
  return value;
}
/** By the entry that requests a command: the kind of the step, and the members that are its name and its input. */
const REQUESTS: Readonly<Record<string, string>> = {
  TaskScheduled: "task taskType input",
  ChildWorkflowInitiated: "child childExecutionName input",
  TimerStarted: "timer timerId ms",
  OperationCompleted: "operation operationName input",
  OperationFailed: "operation operationName input",
  StateSet: "state key -",
};
const ENDS: any = { TimerFired: "fired", TimerCancelled: "cancelled" };
function claimOf({ kind, definition: name, version }: any, entries: readonly any[]): string | undefined {
  const steps = new Map<string, any>();
  let facts = {};
  const key = (value: unknown): string | undefined => (value === undefined ? value : keyOf("value", jcs(value)));
  for (const [, type, command, , , text] of entries) {
    const data = JSON.parse(text);
    const [step, called, input] = REQUESTS[type]?.split(" ") ?? [];
    const out = key([data.result, data.output, data.value].find((value) => value !== undefined));
    const error = key(data.error);
    if (type === "RunStarted") facts = { end: "open", input: key(data.input) };
    else if (type === "RunCompleted") facts = { ...facts, end: "completed", output: out };
    else if (type === "RunFailed") facts = { ...facts, end: "failed", error };
    else if (step) steps.set(command, { order: data.index, name: data[called!], in: key(data[input!]), kind: step });
    else if (!steps.has(command)) return undefined;
    if (steps.has(command)) steps.set(command, { ...steps.get(command), command, out, error, end: ENDS[type] });
  }
  const ordered = [...steps.values()].toSorted((a, b) => a.order - b.order);
  const texts = ordered.map((record) => jcs({ ...record, order: undefined }));
  return jcs({ ...facts, kind, name, root: rootOf(texts), steps: texts.length, v: 1, version });
}
const leafOf = ([seq, type, command, at, took, data, more]: any): string =>
  jcs({ at, command, data: sha(data), seq, size: size(data), tookMs: took ?? undefined, type, ...more });
const chainAfter = (chain: string, [, type, command, , , data]: any): string =>
  digestOf("reprise/entry/v1", chain, type, command, data);
function checkSection(lines: readonly string[], isCut: boolean, vkeys: readonly string[]): void {
  let entries = 0;
  const [header, envelope, claim, record, ...body] = lines.map((line, at) => {
    const value = parse(line);
    const seq = at < 4 ? undefined : Array.isArray(value) ? value[0] : value.seq;
    must(seq === undefined ? (HEAD[at] ?? PARTS.find((part) => part in value) ?? "") in value : seq > entries++);
    must(seq === undefined || Math.floor(seq) === entries, "incomplete");
    return value;
  });
  const { run, form, reprise } = header;
  const isFull = form === "full";
  must(reprise === "bundle/1" && ["full", "hash-only", "blind"].includes(form));
  const ranks = body.slice(entries).map((part) => PARTS.indexOf(Object.keys(part)[0]!));
  must(ranks.every((rank, at) => isFull && rank >= (ranks[at - 1] ?? 0)));
  const journal = body.slice(0, entries);
  must(journal.every((one) => Array.isArray(one) === isFull));
  must(!isCut && record !== undefined, "incomplete");
  // The statement, and the row that it covers.
  const { payload, payloadType, signatures } = envelope;
  const text = Buffer.from(payload, "base64").toString();
  must(Buffer.from(text).toString("base64") === payload && payloadType === "application/vnd.in-toto+json");
  must(signatures.every((one: object) => jcs(Object.keys(one)) === '["keyid","sig"]'));
  const { predicate: said, subject } = parse(text);
  must(["journal", ...PARTS].every((list) => Number.isSafeInteger((said[list] ?? { size: 0 }).size)));
  must(entries >= said.journal.size, "incomplete");
  const { id, generation, kind, definition: name, version, status, createdAt, endedAt } = run;
  const isOpen = !["completed", "failed", "cancelled", "continued"].includes(status);
  const row = { parent: run.parent, status: isOpen ? status : undefined, blind: form === "blind" || undefined };
  must(sha(lines[0]!) === said.row && id === said.run && generation === said.generation);
  must(
    jcs([row, run.tags]) === jcs([{ parent: said.parent, status: said.status, blind: said.blind }, said.tags ?? []]),
  );
  must(entries === said.journal.size && said.journal.root === rootOf(isFull ? journal.map(leafOf) : lines.slice(4)));
  must(!isFull || journal.reduce(chainAfter, digestOf("reprise/journal/v1")) === said.chain);
  must(claim.t === typeOf("claim") && claim.k === keyOf("claim", claim.s) && claim.k === said.claim);
  const times = endedAt === undefined ? [createdAt] : [createdAt, endedAt];
  const facts = { chain: said.chain, end: isOpen ? "open" : status, generation, id, kind, name, size: entries };
  must(record.s === jcs({ ...facts, nonce: parse(record.s).nonce, times, v: 1, version }));
  must(record.t === typeOf("run") && record.k === keyOf("run", record.s));
  for (const part of isFull ? PARTS : []) {
    const texts = body.slice(entries).flatMap((one) => (part in one ? [one[part]] : []));
    const head = said[part] ?? { root: rootOf([]), size: 0 };
    must(texts.length >= head.size, "incomplete");
    must(texts.length === head.size && rootOf(texts) === head.root);
  }
  const derived = isFull && kind === "workflow" && !said.forked ? claimOf(run, journal) : undefined;
  must((derived ?? claim.s) === claim.s && subject[0].digest.sha256 === sha(claim.s));
  const [{ keyid, sig } = { keyid: "-", sig: "" }] = signatures;
  const vkey = vkeys.find((one) => one.startsWith(`${keyid}+`));
  must(vkey !== undefined, "untrusted");
  const x = Buffer.from(vkey.slice(keyid.length + 1), "base64")
    .subarray(1)
    .toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const signature = Buffer.from(sig, "base64");
  must(signature.toString("base64") === sig && verify(null, Buffer.from(pae(payloadType, text)), key, signature));
  must(keyid.startsWith(`${said.origin}+`), "untrusted");
}
/** The verdict of each section. */
export function secondCheck(file: Uint8Array, vkeys: readonly string[]): readonly Verdict[] {
  const lines = Buffer.from(file).toString("latin1").split("\n");
  const isCut = lines.pop() !== "";
  const starts = lines.flatMap((line, at) => (line.startsWith('{"form"') || at === 0 ? [at] : []));
  const decode = (line: string): string => new TextDecoder("utf-8", UTF8).decode(Buffer.from(line, "latin1"));
  return starts.map((start, index) => {
    try {
      checkSection(lines.slice(start, starts[index + 1]).map(decode), isCut && index === starts.length - 1, vkeys);
      return "fine";
    } catch (error) {
      return error instanceof Problem ? (error.message as Verdict) : "damaged";
    }
  });
}
