// Page check: the script that checks the lines of a bundle inside a page, with the browser's own SHA-256 and Ed25519.
//
// page-check.P1. It compares what the lines say with what follows from them: keys, chain, root, digests, signature. It does not derive the
//   claim from the entries: `reprise verify` does. The page is for reading, and the proof is in the lines.
// page-check.P2. Plain JavaScript of the browser in a text, so that a page has exactly these bytes. It may not contain `</script`.

/** Defines `checkLines(text, vkey)`: a report per section. */
export const CHECK_SCRIPT = String.raw`
const encoder = new TextEncoder();
const bytesOf = (text) => encoder.encode(text);
const sizeOf = (text) => bytesOf(text).length;
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
function fromBase64(text) {
  // Other bits behind the end decode to the same bytes.
  if (btoa(atob(text)) !== text) throw new Error("a text is not canonical base64");
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const sha256Hex = async (text) => hexOf(await sha256(bytesOf(text)));
const pae = (type, text) => "DSSEv1 " + sizeOf(type) + " " + type + " " + sizeOf(text) + " " + text;
const typeOf = (name) => "application/vnd.reprise." + name + ".v1+json";
const prefixed = (text) => sizeOf(text) + ":" + text;

function joined(head, ...parts) {
  const bytes = new Uint8Array(1 + parts.reduce((sum, part) => sum + part.length, 0));
  bytes[0] = head;
  let at = 1;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The root of RFC 6962 over the texts of leaves. */
async function rootOf(texts) {
  let level = [];
  for (const text of texts) level.push(await sha256(joined(0, bytesOf(text))));
  if (level.length === 0) return sha256Hex("");
  while (level.length > 1) {
    const above = [];
    for (let at = 0; at < level.length; at += 2)
      above.push(at + 1 < level.length ? await sha256(joined(1, level[at], level[at + 1])) : level[at]);
    level = above;
  }
  return hexOf(level[0]);
}

async function leafOf([seq, type, command, at, tookMs, data, more = {}]) {
  const { execution, startedAt, worker } = more;
  const took = tookMs === null ? undefined : tookMs;
  return JSON.stringify(
    { at, command, data: await sha256Hex(data), execution, seq, size: sizeOf(data), startedAt, tookMs: took, type, worker },
  );
}

async function chainOf(entries) {
  let chain = await sha256Hex(prefixed("reprise/journal/v1"));
  for (const [, type, command, , , data] of entries)
    chain = await sha256Hex(["reprise/entry/v1", chain, type, command, data].map(prefixed).join(""));
  return chain;
}

async function checkSignature(envelope, statement, vkey) {
  const [signature] = envelope.signatures;
  if (signature === undefined) return { name: "signature", state: "none", text: "not signed" };
  if (!vkey || !vkey.startsWith(signature.keyid + "+"))
    return { name: "signature", state: "none", text: "signed by " + signature.keyid + ", whose key this page does not have" };
  let isValid;
  try {
    const raw = fromBase64(vkey.slice(signature.keyid.length + 1)).subarray(1);
    const key = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
    isValid = await crypto.subtle.verify("Ed25519", key, fromBase64(signature.sig), bytesOf(pae(envelope.payloadType, statement)));
  } catch (error) {
    if (error.name !== "NotSupportedError") return { name: "signature", state: "bad", text: "the signature cannot be read" };
    return { name: "signature", state: "none", text: "this browser has no Ed25519" };
  }
  return { name: "signature", state: isValid ? "good" : "bad", text: isValid ? "of the key below" : "does not belong to this statement" };
}

async function checkSection(lines, vkey) {
  const [header, envelope, claim, record] = lines.slice(0, 4).map((line) => JSON.parse(line));
  const statement = new TextDecoder().decode(fromBase64(envelope.payload));
  const said = JSON.parse(statement).predicate;
  const isFull = header.form === "full";
  const body = lines.slice(4);
  const isEntry = (line) => (isFull ? line.startsWith("[") : line.startsWith('{"at"'));
  const entryLines = body.filter(isEntry);
  const entries = isFull ? entryLines.map((line) => JSON.parse(line)) : [];
  const checks = [];
  const compare = (name, actual, expected) =>
    checks.push({ name, state: actual === expected ? "good" : "bad", text: actual === expected ? "" : actual + " instead of " + expected });
  compare("number of entries", entryLines.length, said.journal.size);
  if (isFull) compare("hash chain of the entries", await chainOf(entries), said.chain);
  const leaves = isFull ? await Promise.all(entries.map(leafOf)) : entryLines;
  compare("tree of the entries, with their times", await rootOf(leaves), said.journal.root);
  compare("claim", await sha256Hex(pae(typeOf("claim"), claim.s)), said.claim);
  compare("key of the claim", claim.k, said.claim);
  compare("types", claim.t + " " + record.t, typeOf("claim") + " " + typeOf("run"));
  compare("run record", await sha256Hex(pae(typeOf("run"), record.s)), record.k);
  compare("row of the run", await sha256Hex(lines[0]), said.row);
  for (const part of isFull ? ["uses", "evidence", "attempts"] : []) {
    const texts = body.filter((line) => line.startsWith('{"' + part + '":')).map((line) => JSON.parse(line)[part]);
    if (texts.length === 0 && said[part] === undefined) continue;
    compare("number of " + part, texts.length, said[part]?.size);
    compare(part, await rootOf(texts), said[part]?.root);
  }
  checks.push(await checkSignature(envelope, statement, vkey));
  return { header, said, claim: JSON.parse(claim.s), entries: isFull ? entries : entryLines.map((line) => JSON.parse(line)), checks };
}

async function checkLines(text, vkey) {
  const plain = text.replace(/\\(?:u003c|[^])/g, (found) => (found === "\\u003c" ? "<" : found));
  const sections = [];
  for (const line of plain.split("\n")) {
    if (line === "") continue;
    if (line.startsWith('{"form"')) sections.push([]);
    if (sections.length === 0) throw new Error("the first line is not a header");
    sections.at(-1).push(line);
  }
  const reports = [];
  for (const lines of sections) reports.push(await checkSection(lines, vkey));
  return reports;
}
`;
