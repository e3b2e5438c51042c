// Payload cipher: encodes payload texts with the user's codec and decodes them, the same way for every database.
//
// payload-cipher.Y1. Decoding for a read never throws. A payload that cannot be decoded becomes a text that `decode` refuses, so
//   only its own run fails.
// payload-cipher.Y2. A store keeps one encoded probe per codec name it was written with. A process that cannot decode every probe
//   (no codec, a missing key, a wrong key) is refused before anything is written.

import {
  InvariantError,
  RepriseError,
  CODEC_MARK,
  unreadableText,
  type PayloadCodec,
  type PayloadContext,
} from "../base/index.ts";

export class PayloadCipher {
  readonly codec: PayloadCodec;
  /** False when the process has no codec: payloads can be neither read nor written. */
  readonly isUnlocked: boolean;

  constructor(codec: PayloadCodec, isUnlocked: boolean) {
    this.codec = codec;
    this.isUnlocked = isUnlocked;
  }

  /** Throws the error that names the missing codec. */
  refuse(): never {
    this.codec.decode(new Uint8Array(), probeContext(this.codec.name));
    throw new InvariantError("Only a locked cipher refuses.");
  }

  encode(text: string, context: PayloadContext): Uint8Array {
    let bytes: Uint8Array;
    try {
      bytes = this.codec.encode(text, context);
    } catch (error) {
      throw codecError(error, `The codec ${this.codec.name} could not encode ${nameOf(context)}`, context);
    }
    const marked = Buffer.allocUnsafe(bytes.length + 1);
    marked[0] = CODEC_MARK;
    marked.set(bytes, 1);
    return marked;
  }

  /** payload-cipher.Y1 */
  decode(blob: Uint8Array, context: PayloadContext): string {
    try {
      return this.decodeOrThrow(blob, context);
    } catch (error) {
      return unreadableText(error as RepriseError);
    }
  }

  decodeOrThrow(blob: Uint8Array, context: PayloadContext): string {
    if (blob[0] !== CODEC_MARK) return Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength).toString();
    try {
      return this.codec.decode(blob.subarray(1), context);
    } catch (error) {
      throw codecError(error, `${nameOf(context)} cannot be read`, context);
    }
  }

  // ── probes (payload-cipher.Y2) ──

  probe(): string {
    return Buffer.from(this.encode(PROBE, probeContext(this.codec.name))).toString("base64");
  }

  checkProbe(name: string, probe: string): void {
    const text = this.decodeOrThrow(Buffer.from(probe, "base64"), probeContext(name));
    if (text !== PROBE)
      throw new RepriseError(
        "PAYLOAD_UNREADABLE",
        `The codec ${this.codec.name} decodes what the codec ${name} wrote to another text. Pass the codec that this store was written with as \`codec\`.`,
      );
  }
}

const NAMES: Readonly<Record<string, (place: string) => string>> = {
  journal: (place) => `Entry ${place}`,
  inbox: (place) => `Message ${place}`,
  chunk: (place) => `Chunk ${place}`,
  failures: (place) => `The earlier failures of ${place}`,
  evidence: () => "The evidence",
  memo: (place) => `The memo ${place}`,
  schedule: (place) => `The input of schedule ${place}`,
  langgraph: (place) => `The LangGraph value ${place}`,
  langgraph_write: (place) => `The LangGraph write ${place}`,
  probe: (place) => `The probe of codec ${place} in this store`,
};

function nameOf({ run, field, place }: PayloadContext): string {
  const name = NAMES[field]?.(place) ?? `The ${field} ${place}`;
  return run === 0 ? name : `${name} of run number ${run}`;
}

function codecError(error: unknown, what: string, context: PayloadContext): RepriseError {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof RepriseError)
    return new RepriseError(error.code, `${what}: ${reason}`, {
      cause: error.cause,
      details: { ...context, ...error.details },
    });
  return new RepriseError(
    "PAYLOAD_UNREADABLE",
    `${what}: ${reason.replace(/\.$/, "")}. Pass the codec it was written with as \`codec\`, or restore the store from a backup.`,
    { cause: error, details: { ...context } },
  );
}

const PROBE = '"reprise"';

function probeContext(name: string): PayloadContext {
  return { run: 0, field: "probe", place: name };
}

/** The key of a probe in `meta` is this prefix and the codec's name. */
export const CODEC_KEY_PREFIX = "codec ";
/** Every key with the prefix is less than this. */
export const CODEC_KEYS_END = "codec!";

export interface CodecProbe {
  readonly name: string;
  readonly probe: string;
}

/** payload-cipher.Y2. Undefined when the process has no codec and the store no probe. `where`: the store's name in messages. */
export function openPayloadCipher<S extends PayloadCipher>(
  notes: readonly CodecProbe[],
  where: string,
  codec: PayloadCodec | undefined,
  mayBeLocked: boolean,
  make: (codec: PayloadCodec, isOpen: boolean) => S,
): S | undefined {
  if (codec === undefined && notes.length === 0) return undefined;
  if (codec === undefined) {
    const names = notes.map(({ name }) => name).join(", ");
    if (!mayBeLocked) throw locked(where, names);
    return make(lockedCodec(where, names), false);
  }
  const cipher = make(codec, true);
  refuseBrokenCodec(cipher);
  for (const { name, probe } of notes) cipher.checkProbe(name, probe);
  return cipher;
}

function refuseBrokenCodec(cipher: PayloadCipher): void {
  try {
    cipher.checkProbe(cipher.codec.name, cipher.probe());
  } catch (cause) {
    throw new RepriseError(
      "BAD_OPTIONS",
      `The codec ${cipher.codec.name} is broken: decode(encode(text)) does not return the text. Fix the codec passed as \`codec\`.`,
      { cause },
    );
  }
}

function locked(path: string, names: string): RepriseError {
  return new RepriseError(
    "PAYLOAD_KEY_MISSING",
    `The payloads in ${path} were written with a codec (${names}), and this process has none. Pass \`codec\` to createEngine, or --codec to the command.`,
    { details: { path, codecs: names } },
  );
}

function lockedCodec(path: string, names: string): PayloadCodec {
  const refuse = (): never => {
    throw locked(path, names);
  };
  return { name: names, encode: refuse, decode: refuse };
}
