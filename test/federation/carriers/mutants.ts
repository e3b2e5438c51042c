// Broken carriers: each has one defect that a carrier case must notice.

import type { GetOptions, ListOptions, PutOptions } from "../../../src/federation/index.ts";
import { MemoryCarrier, type MemoryPlace } from "./memory-carrier.ts";

export interface CarrierMutant {
  readonly name: string;
  open(place: MemoryPlace): MemoryCarrier;
}

function mutant(name: string, Defect: new (place: MemoryPlace) => MemoryCarrier): CarrierMutant {
  return { name, open: (place) => new Defect(place) };
}

const isFile = (answer: unknown): answer is { bytes: Uint8Array; etag: string } => typeof answer === "object";
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export const CARRIER_MUTANTS: readonly CarrierMutant[] = [
  mutant(
    "reads files as text",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        return super.put(path, Buffer.from(Buffer.from(bytes).toString("utf8")), options);
      }
    },
  ),
  mutant(
    "answers an absent file with an empty one",
    class extends MemoryCarrier {
      override async get(path: string, options?: GetOptions) {
        return (await super.get(path, options)) ?? { bytes: new Uint8Array(), etag: "none" };
      }
    },
  ),
  mutant(
    "overwrites with absent",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        return "absent" in options ? this.place.set(path, bytes) : super.put(path, bytes, options);
      }
    },
  ),
  mutant(
    "takes match null for no condition",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        const isFree = "match" in options && options.match === null;
        return isFree ? this.place.set(path, bytes) : super.put(path, bytes, options);
      }
    },
  ),
  mutant(
    "does not compare versions",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        const there = this.place.files.get(path);
        const isReplace = "match" in options && options.match !== null && there !== undefined;
        return isReplace ? this.place.set(path, bytes) : super.put(path, bytes, options);
      }
    },
  ),
  mutant(
    "creates a file that it should replace",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        return super.put(path, bytes, this.place.files.has(path) ? options : { absent: true });
      }
    },
  ),
  mutant(
    "returns another version than get",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        const etag = await super.put(path, bytes, options);
        return etag === "refused" ? etag : `${etag}-put`;
      }
    },
  ),
  mutant(
    "never says unchanged",
    class extends MemoryCarrier {
      override async get(path: string, { after: _, ...options }: GetOptions = {}) {
        return super.get(path, options);
      }
    },
  ),
  mutant(
    "compares, then writes later",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        const wanted = "match" in options ? (options.match ?? undefined) : undefined;
        const isMatch = this.place.files.get(path)?.etag === wanted;
        await tick();
        return isMatch ? this.place.set(path, bytes) : "refused";
      }
    },
  ),
  mutant(
    "writes a file in two halves",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        if (bytes.length < 100_000) return super.put(path, bytes, options);
        const etag = await super.put(path, bytes.subarray(0, bytes.length / 2), options);
        if (etag === "refused") return etag;
        await tick();
        return super.put(path, bytes, { match: etag });
      }
    },
  ),
  mutant(
    "does not wait",
    class extends MemoryCarrier {
      override async get(path: string, { waitMs: _, ...options }: GetOptions = {}) {
        return super.get(path, options);
      }
    },
  ),
  mutant(
    "waits for changes only, not for new files",
    class extends MemoryCarrier {
      override async get(path: string, options: GetOptions = {}) {
        return super.get(path, this.place.files.has(path) ? options : { ...options, waitMs: 0 });
      }
    },
  ),
  mutant(
    "returns the file after a wait, although it did not change",
    class extends MemoryCarrier {
      override async get(path: string, options: GetOptions = {}) {
        const answer = await super.get(path, options);
        return answer === "unchanged" && options.waitMs !== undefined ? this.place.files.get(path) : answer;
      }
    },
  ),
  mutant(
    "ignores signals",
    class extends MemoryCarrier {
      override async get(path: string, { signal: _, ...options }: GetOptions = {}) {
        return super.get(path, options);
      }
    },
  ),
  mutant(
    "lists what begins with the folder's name",
    class extends MemoryCarrier {
      override async *list(prefix: string, options?: ListOptions): AsyncIterable<string> {
        for await (const path of super.list("", options)) if (path.startsWith(prefix.replace(/\/$/, ""))) yield path;
      }
    },
  ),
  mutant(
    "lists everything when asked for children",
    class extends MemoryCarrier {
      override list(prefix: string): AsyncIterable<string> {
        return super.list(prefix);
      }
    },
  ),
  mutant(
    "empties a file instead of removing it",
    class extends MemoryCarrier {
      override async remove(path: string): Promise<void> {
        this.place.set(path, new Uint8Array());
      }
    },
  ),
  mutant(
    "reads files of any length",
    class extends MemoryCarrier {
      override async get(path: string, { maxBytes: _, ...options }: GetOptions = {}) {
        return super.get(path, options);
      }
    },
  ),
  mutant(
    "cuts long files off",
    class extends MemoryCarrier {
      override async get(path: string, { maxBytes = Infinity, ...options }: GetOptions = {}) {
        const answer = await super.get(path, options);
        return isFile(answer) ? { ...answer, bytes: answer.bytes.subarray(0, Math.min(maxBytes, 1_000_000)) } : answer;
      }
    },
  ),
  mutant(
    "takes any path",
    class extends MemoryCarrier {
      override async get(path: string, options?: GetOptions) {
        return super.get(
          path
            .replace(/[^a-z0-9/.-]|^$/g, "x")
            .replace(/\.\.|\/\/|\/$|^\/|\.\//g, "x")
            .slice(0, 800),
          options,
        );
      }
    },
  ),
  mutant(
    "shows its files only later",
    class extends MemoryCarrier {
      override async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
        void tick().then(() => super.put(path, bytes, options).catch(() => undefined));
        return "v1";
      }
    },
  ),
];
