// Seal: what a codec makes of the text of payloads, and back; the same for every database.
//
// Y3. Reading never throws: what cannot be brought back is a text that refuses to be decoded, and hurts one run only.
// Y4. A store notes, for each way it was ever written, one sealed probe. Whoever cannot open all of them is turned away
//     before anything is written: a process without the codec, without a key, or with a wrong one.

import {
  InvariantError,
  RepriseError,
  SEALED,
  unreadableText,
  type PayloadCodec,
  type PayloadContext,
} from "../base/index.ts";

type Blob = Uint8Array | null;

export class Seal {
  readonly codec: PayloadCodec;
  /** False when only the names of the codecs are known: nothing can be read or written. */
  readonly isOpen: boolean;
  /** Payloads `reseal` had to leave as they were. */
  unreadable = 0;

  constructor(codec: PayloadCodec, isOpen: boolean) {
    this.codec = codec;
    this.isOpen = isOpen;
  }

  /** Says what is missing, where it cannot be done without. */
  refuse(): never {
    this.codec.decode(new Uint8Array(), probeContext(this.codec.name));
    throw new InvariantError("A border that is open was asked to refuse.");
  }

  seal(text: string, context: PayloadContext): Uint8Array {
    let bytes: Uint8Array;
    try {
      bytes = this.codec.encode(text, context);
    } catch (error) {
      throw codecError(error, `The codec ${this.codec.name} could not encode ${nameOf(context)}`, context);
    }
    const sealed = Buffer.allocUnsafe(bytes.length + 1);
    sealed[0] = SEALED;
    sealed.set(bytes, 1);
    return sealed;
  }

  /** Y3 */
  open(blob: Uint8Array, context: PayloadContext): string {
    try {
      return this.openOrThrow(blob, context);
    } catch (error) {
      return unreadableText(error as RepriseError);
    }
  }

  openOrThrow(blob: Uint8Array, context: PayloadContext): string {
    if (blob[0] !== SEALED) return Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength).toString();
    try {
      return this.codec.decode(blob.subarray(1), context);
    } catch (error) {
      throw codecError(error, `${nameOf(context)} cannot be read`, context);
    }
  }

  reseal(blob: Blob, context: PayloadContext): Blob {
    if (blob === null) return null;
    let text: string;
    try {
      text = this.openOrThrow(blob, context);
    } catch {
      this.unreadable += 1;
      return blob;
    }
    return this.seal(text, context);
  }

  // ── probes (Y4) ──

  probe(): string {
    return Buffer.from(this.seal(PROBE, probeContext(this.codec.name))).toString("base64");
  }

  checkProbe(name: string, probe: string): void {
    const text = this.openOrThrow(Buffer.from(probe, "base64"), probeContext(name));
    if (text !== PROBE)
      throw new RepriseError(
        "PAYLOAD_UNREADABLE",
        `The codec ${this.codec.name} does not give back what ${name} wrote. Give the codec this store was written with.`,
      );
  }
}

const NAMES: Readonly<Record<string, (place: string) => string>> = {
  journal: (place) => `Entry ${place}`,
  inbox: (place) => `Message ${place}`,
  chunk: (place) => `Chunk ${place}`,
  failures: (place) => `What failed before in ${place}`,
  evidence: () => "The evidence",
  schedule: (place) => `The input of the schedule ${place}`,
  langgraph: (place) => `The LangGraph value ${place}`,
  langgraph_write: (place) => `The LangGraph write ${place}`,
  probe: (place) => `What ${place} left in the store`,
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
    `${what}: ${reason.replace(/\.$/, "")}. Give the codec it was written with, or restore the row from a backup.`,
    { cause: error, details: { ...context } },
  );
}

const PROBE = '"reprise"';

function probeContext(name: string): PayloadContext {
  return { run: 0, field: "probe", place: name };
}

/** Of the keys in `meta`; the name of the codec follows. */
export const CODEC_NOTE = "codec ";

export interface CodecNote {
  readonly name: string;
  readonly probe: string;
}

/** Y4. Undefined when there is neither a codec nor a payload that needs one. `where`: the store, for people. */
export function openSeal<S extends Seal>(
  notes: readonly CodecNote[],
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
  const seal = make(codec, true);
  refuseBrokenCodec(seal);
  for (const { name, probe } of notes) seal.checkProbe(name, probe);
  return seal;
}

function refuseBrokenCodec(seal: Seal): void {
  try {
    seal.checkProbe(seal.codec.name, seal.probe());
  } catch (cause) {
    throw new RepriseError(
      "BAD_OPTIONS",
      `The codec ${seal.codec.name} does not give back what it is given: decode(encode(text)) must be text.`,
      { cause },
    );
  }
}

function locked(path: string, names: string): RepriseError {
  return new RepriseError(
    "PAYLOAD_KEY_MISSING",
    `The payloads in ${path} are written with a codec (${names}), and none was given. Give \`codec\` to createEngine, or --codec to the command.`,
    { details: { path, codecs: names } },
  );
}

function lockedCodec(path: string, names: string): PayloadCodec {
  const refuse = (): never => {
    throw locked(path, names);
  };
  return { name: names, encode: refuse, decode: refuse };
}
