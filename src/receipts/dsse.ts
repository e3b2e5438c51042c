// DSSE: signed envelopes (DSSE v1) around in-toto statements.
//
// dsse.E1. The signature covers PAE(type, payload). An envelope without signatures is unsigned, and says so.
// dsse.E2. One signature per envelope: that of the origin the statement names.

import { canonicalJson, pae } from "../base/index.ts";
import type { SigningKey, VerifyingKey } from "./signing-key.ts";

export const STATEMENT_TYPE = "application/vnd.in-toto+json";

export interface Envelope {
  /** The text, in base64. */
  readonly payload: string;
  readonly payloadType: string;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** The text of an envelope around a statement. */
export function envelopeText(statement: string, key: SigningKey | undefined): string {
  const envelope: Envelope = {
    payload: Buffer.from(statement).toString("base64"),
    payloadType: STATEMENT_TYPE,
    signatures:
      key === undefined ? [] : [{ keyid: key.id, sig: key.sign(pae(STATEMENT_TYPE, statement)).toString("base64") }],
  };
  return canonicalJson(envelope);
}

export type SignatureCheck =
  | { readonly status: "trusted"; readonly origin: string }
  | { readonly status: "unsigned" }
  /** Signed by a key that the verifier does not have. */
  | { readonly status: "unknown_key"; readonly keyid: string }
  /** The key is known, and the signature is not of this text. */
  | { readonly status: "bad_signature"; readonly keyid: string };

/** Checks the signature with the keys that the verifier admits. */
export function checkSignature(envelope: Envelope, statement: string, keys: readonly VerifyingKey[]): SignatureCheck {
  const [signature] = envelope.signatures;
  if (signature === undefined) return { status: "unsigned" };
  const { keyid, sig } = signature;
  const key = keys.find(({ id }) => id === keyid);
  if (key === undefined) return { status: "unknown_key", keyid };
  const bytes = Buffer.from(sig, "base64");
  // Base64 with other bits behind its end decodes to the same bytes.
  const isExact = bytes.toString("base64") === sig;
  if (!isExact || !key.verify(pae(envelope.payloadType, statement), bytes)) return { status: "bad_signature", keyid };
  return { status: "trusted", origin: key.origin };
}

/** An envelope's text, opened; undefined: it is none, or not in its canonical form. */
export function parseEnvelope(text: string): { readonly envelope: Envelope; readonly statement: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
    if (canonicalJson(value) !== text) return undefined;
  } catch {
    return undefined;
  }
  const { payload, payloadType, signatures } = (value ?? {}) as Partial<Envelope>;
  if (typeof payload !== "string" || payloadType !== STATEMENT_TYPE || !Array.isArray(signatures)) return undefined;
  if (signatures.length > 1 || !signatures.every(isSignature)) return undefined;
  const bytes = Buffer.from(payload, "base64");
  const statement = bytes.toString("utf8");
  // Bytes that are no UTF-8 would be read as U+FFFD, which has another signature.
  const isExact = bytes.toString("base64") === payload && Buffer.from(statement).equals(bytes);
  return isExact ? { envelope: value as Envelope, statement } : undefined;
}

function isSignature(value: unknown): value is Envelope["signatures"][number] {
  const { keyid, sig } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof keyid === "string" && typeof sig === "string";
}
