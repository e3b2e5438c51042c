// Carrier cases: what every carrier promises, as plain data: a name and a function. They run on every carrier, in tests and in
// `npm run faults`, and each fails on a broken carrier (carriers/mutants.ts).

import assert from "node:assert/strict";
import { RepriseError } from "../../src/base/index.ts";
import type { Carrier, CarrierFile, PutOptions } from "../../src/federation/index.ts";

/** An empty place that several carriers may be opened on. */
export interface CarrierPlace {
  open(): Promise<Carrier>;
  /** How long a case waits for a change that must come. */
  readonly waitMs: number;
}

export interface CarrierCase {
  readonly name: string;
  run(place: CarrierPlace): Promise<void>;
}

const ORIGIN = "edge7/56475aa75463474c";
/** A path of each kind: some carriers keep files that change elsewhere. */
const PATHS = [`${ORIGIN}/checkpoint`, `${ORIGIN}/pack/000`] as const;
const [CHECKPOINT] = PATHS;
const TILE = `${ORIGIN}/tile/entries/x001/067`;

const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const ABSENT = { absent: true } as const;

/** Deterministic bytes without structure. */
export function noise(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

async function put(carrier: Carrier, path: string, bytes: Uint8Array, options: PutOptions): Promise<string> {
  const etag = await carrier.put!(path, bytes, options);
  assert.notEqual(etag, "refused", `put of ${path} must succeed`);
  return etag;
}

async function read(carrier: Carrier, path: string): Promise<CarrierFile> {
  const file = await carrier.get(path);
  assert.ok(file !== undefined && file !== "unchanged", `${path} must be there`);
  return file;
}

async function expectBytes(carrier: Carrier, path: string, bytes: Uint8Array): Promise<void> {
  const file = await read(carrier, path);
  assert.ok(
    Buffer.from(bytes).equals(file.bytes),
    `${path}: expected ${bytes.length} bytes, got ${file.bytes.length} others`,
  );
}

async function listOf(carrier: Carrier, prefix: string, shallow = false): Promise<string[]> {
  const found: string[] = [];
  for await (const path of carrier.list!(prefix, shallow ? { shallow } : undefined)) found.push(path);
  return found.sort();
}

async function codeOf(act: () => Promise<unknown>): Promise<string> {
  try {
    await act();
  } catch (error) {
    return error instanceof RepriseError ? error.code : String(error);
  }
  return "no error";
}

/** Opens carriers on one place, and closes them. */
function withCarriers(
  count: number,
  act: (carriers: readonly Carrier[], place: CarrierPlace) => Promise<void>,
): CarrierCase["run"] {
  return async (place) => {
    const carriers = await Promise.all(Array.from({ length: count }, () => place.open()));
    try {
      await act(carriers, place);
    } finally {
      await Promise.all(carriers.map((carrier) => carrier.close()));
    }
  };
}

const onOne = (act: (carrier: Carrier, place: CarrierPlace) => Promise<void>): CarrierCase["run"] =>
  withCarriers(1, ([carrier], place) => act(carrier!, place));
const onTwo = (act: (a: Carrier, b: Carrier, place: CarrierPlace) => Promise<void>): CarrierCase["run"] =>
  withCarriers(2, ([a, b], place) => act(a!, b!, place));

export const CARRIER_CASES: readonly CarrierCase[] = [
  {
    name: "a file is read as it was put, byte for byte",
    run: onTwo(async (a, b) => {
      const files = [0, 1, 255, 65_536, 300_000, 3_000_000].map(
        (size) => [`${ORIGIN}/artifact/ab/${size}`, noise(size)] as const,
      );
      for (const [path, bytes] of files) await put(a, path, bytes, ABSENT);
      for (const [path, bytes] of files) await expectBytes(b, path, bytes);
    }),
  },
  {
    name: "a file that does not exist is undefined",
    run: onOne(async (carrier) => {
      for (const path of [...PATHS, TILE]) assert.equal(await carrier.get(path), undefined);
      await put(carrier, TILE, bytesOf("x"), ABSENT);
      assert.equal(await carrier.get(`${TILE}.p/1`), undefined);
      assert.equal(await carrier.get(TILE.slice(0, -1)), undefined);
      assert.equal(await carrier.get(CHECKPOINT, { after: '"1"' }), undefined);
    }),
  },
  {
    name: "put with absent is refused if the file exists, which keeps its bytes",
    run: onTwo(async (a, b) => {
      await put(a, TILE, bytesOf("first"), ABSENT);
      assert.equal(await b.put!(TILE, bytesOf("other"), ABSENT), "refused");
      assert.equal(await b.put!(TILE, bytesOf("first"), ABSENT), "refused");
      await expectBytes(b, TILE, bytesOf("first"));
    }),
  },
  {
    name: "put with match null is refused if the file exists",
    run: onTwo(async (a, b) => {
      for (const path of PATHS) {
        await put(a, path, bytesOf("first"), { match: null });
        assert.equal(await b.put!(path, bytesOf("other"), { match: null }), "refused");
        await expectBytes(b, path, bytesOf("first"));
      }
    }),
  },
  {
    name: "put with match replaces only the version that it names",
    run: onTwo(async (a, b) => {
      for (const path of PATHS) {
        const first = await put(a, path, bytesOf("first"), { match: null });
        const second = await put(b, path, bytesOf("second"), { match: first });
        assert.equal(await a.put!(path, bytesOf("lost"), { match: first }), "refused");
        await expectBytes(a, path, bytesOf("second"));
        await put(a, path, bytesOf("third"), { match: second });
        await expectBytes(b, path, bytesOf("third"));
      }
    }),
  },
  {
    name: "put with match is refused if the file does not exist",
    run: onOne(async (carrier) => {
      for (const path of PATHS) {
        const etag = await put(carrier, path, bytesOf("x"), { match: null });
        await carrier.remove!(path);
        assert.equal(await carrier.put!(path, bytesOf("y"), { match: etag }), "refused");
        assert.equal(await carrier.get(path), undefined);
      }
    }),
  },
  {
    name: "put returns the version that get returns, and another content has another version",
    run: onTwo(async (a, b) => {
      for (const path of PATHS) {
        const first = await put(a, path, bytesOf("first"), { match: null });
        assert.equal((await read(b, path)).etag, first);
        const second = await put(a, path, bytesOf("other"), { match: first });
        assert.notEqual(second, first);
        assert.equal((await read(b, path)).etag, second);
      }
    }),
  },
  {
    name: "get after the current version is unchanged, and after an older one it is the file",
    run: onTwo(async (a, b) => {
      for (const path of PATHS) {
        const first = await put(a, path, bytesOf("first"), { match: null });
        assert.equal(await b.get(path, { after: first }), "unchanged");
        const second = await put(a, path, bytesOf("second"), { match: first });
        const found = await b.get(path, { after: first });
        assert.ok(found !== undefined && found !== "unchanged");
        assert.deepEqual([Buffer.from(found.bytes).toString(), found.etag], ["second", second]);
        assert.equal(await b.get(path, { after: second }), "unchanged");
      }
    }),
  },
  {
    name: "of several writers of one absent file one succeeds",
    run: withCarriers(4, async (carriers) => {
      for (let round = 0; round < 5; round += 1) {
        const path = `${ORIGIN}/tile/0/00${round}`;
        const outcomes = await Promise.all(
          carriers.map((carrier, at) => carrier.put!(path, bytesOf(`writer ${at}`), ABSENT)),
        );
        const winners = outcomes.flatMap((outcome, at) => (outcome === "refused" ? [] : [at]));
        assert.equal(winners.length, 1, `${winners.length} writers succeeded`);
        await expectBytes(carriers[0]!, path, bytesOf(`writer ${winners[0]}`));
      }
    }),
  },
  {
    name: "no write is lost among writers that compare and replace",
    run: withCarriers(3, async (carriers) => {
      for (const path of PATHS) {
        await put(carriers[0]!, path, bytesOf("0"), { match: null });
        const count = async (carrier: Carrier): Promise<void> => {
          for (let done = 0; done < 5;) {
            const { bytes, etag } = await read(carrier, path);
            const next = Number(Buffer.from(bytes).toString()) + 1;
            if ((await carrier.put!(path, bytesOf(String(next)), { match: etag })) !== "refused") done += 1;
          }
        };
        await Promise.all(carriers.map(count));
        await expectBytes(carriers[0]!, path, bytesOf("15"));
      }
    }),
  },
  {
    name: "a reader sees whole files while a writer replaces them",
    run: onTwo(async (a, b) => {
      const path = PATHS[1];
      const versions = [1, 2].map((seed) => noise(150_000, seed));
      let etag = await put(a, path, versions[0]!, { match: null });
      let isDone = false;
      const write = async (): Promise<void> => {
        try {
          for (let round = 1; round <= 10; round += 1) etag = await put(a, path, versions[round % 2]!, { match: etag });
        } finally {
          isDone = true;
        }
      };
      const watch = async (): Promise<void> => {
        while (!isDone) {
          // A carrier in memory never waits, and would not let the writer write.
          await new Promise((resolve) => setImmediate(resolve));
          const { bytes } = await read(b, path);
          assert.ok(
            versions.some((version) => Buffer.from(version).equals(bytes)),
            "the reader saw a mixture",
          );
        }
      };
      await Promise.all([write(), watch()]);
    }),
  },
  {
    name: "a reader that waits gets the next version",
    run: onTwo(async (a, b, { waitMs }) => {
      for (const path of PATHS) {
        const first = await put(a, path, bytesOf("first"), { match: null });
        const waiting = b.get(path, { after: first, waitMs });
        const second = await put(a, path, bytesOf("second"), { match: first });
        const found = await waiting;
        assert.ok(found !== undefined && found !== "unchanged", "the reader must not give up");
        assert.deepEqual([Buffer.from(found.bytes).toString(), found.etag], ["second", second]);
      }
    }),
  },
  {
    name: "a reader that waits gets a file that did not exist",
    run: onTwo(async (a, b, { waitMs }) => {
      for (const path of PATHS) {
        const waiting = b.get(path, { waitMs });
        await put(a, path, bytesOf("first"), { match: null });
        const found = await waiting;
        assert.ok(found !== undefined && found !== "unchanged", "the reader must not give up");
        assert.equal(Buffer.from(found.bytes).toString(), "first");
      }
    }),
  },
  {
    name: "a wait without a change ends unchanged, or undefined without a file",
    run: onOne(async (carrier) => {
      for (const path of PATHS) {
        assert.equal(await carrier.get(path, { waitMs: 30 }), undefined);
        const etag = await put(carrier, path, bytesOf("x"), { match: null });
        assert.equal(await carrier.get(path, { after: etag, waitMs: 30 }), "unchanged");
      }
    }),
  },
  {
    name: "a signal ends a wait with its reason",
    run: onOne(async (carrier, { waitMs }) => {
      const reason = new Error("enough");
      const ended = AbortSignal.abort(reason);
      for (const path of PATHS) {
        const etag = await put(carrier, path, bytesOf("x"), { match: null });
        const controller = new AbortController();
        const waiting = carrier.get(path, { after: etag, waitMs, signal: controller.signal });
        controller.abort(reason);
        await assert.rejects(waiting, reason);
        await assert.rejects(carrier.get(path, { signal: ended }), reason);
      }
    }),
  },
  {
    name: "list names every file below a prefix and no other",
    run: onOne(async (carrier) => {
      const paths = [
        CHECKPOINT,
        TILE,
        `${ORIGIN}/tile/0/000.p/17`,
        "edge70/0000000000000000/checkpoint",
        "other/1/pack/000",
      ];
      for (const path of paths)
        await put(carrier, path, bytesOf(path), path.endsWith("checkpoint") ? { match: null } : ABSENT);
      assert.deepEqual(await listOf(carrier, ""), [...paths].sort());
      assert.deepEqual(await listOf(carrier, "edge7/"), paths.filter((path) => path.startsWith("edge7/")).sort());
      assert.deepEqual(await listOf(carrier, `${ORIGIN}/tile/`), [TILE, `${ORIGIN}/tile/0/000.p/17`].sort());
      assert.deepEqual(await listOf(carrier, "nothing/"), []);
    }),
  },
  {
    name: "a shallow list names the direct children",
    run: onOne(async (carrier) => {
      for (const path of [TILE, `${ORIGIN}/pack/000`, `${ORIGIN}/pack/x001/000`])
        await put(carrier, path, bytesOf("x"), ABSENT);
      await put(carrier, CHECKPOINT, bytesOf("x"), { match: null });
      assert.deepEqual(await listOf(carrier, "", true), ["edge7/"]);
      assert.deepEqual(
        await listOf(carrier, `${ORIGIN}/`, true),
        [CHECKPOINT, `${ORIGIN}/pack/`, `${ORIGIN}/tile/`].sort(),
      );
      assert.deepEqual(await listOf(carrier, `${ORIGIN}/pack/`, true), [`${ORIGIN}/pack/000`, `${ORIGIN}/pack/x001/`]);
    }),
  },
  {
    name: "a removed file is gone and may be put again",
    run: onTwo(async (a, b) => {
      for (const path of [...PATHS, TILE]) {
        await a.remove!(path);
        await put(a, path, bytesOf("first"), { match: null });
        await b.remove!(path);
        assert.equal(await a.get(path), undefined);
        assert.deepEqual(await listOf(a, `${ORIGIN}/`), []);
        await put(a, path, bytesOf("again"), { match: null });
        await expectBytes(b, path, bytesOf("again"));
        await a.remove!(path);
      }
    }),
  },
  {
    name: "a file that is longer than the reader takes is refused with LIMIT_EXCEEDED",
    run: onOne(async (carrier) => {
      for (const path of PATHS) {
        await put(carrier, path, noise(10_000), { match: null });
        assert.equal(await codeOf(() => carrier.get(path, { maxBytes: 9_999 })), "LIMIT_EXCEEDED");
        const found = await carrier.get(path, { maxBytes: 10_000 });
        assert.ok(found !== undefined && found !== "unchanged" && found.bytes.length === 10_000);
      }
    }),
  },
  {
    name: "a path that leaves the carrier is refused with BAD_NAME",
    run: onOne(async (carrier) => {
      const paths = [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../../x",
        "a//b",
        "a/./b",
        "a/",
        ".hidden/x",
        "a\\b",
        "a\0b",
        "a b",
        "a?b",
        "a%2fb",
        "ä",
      ];
      for (const path of [...paths, "x/".repeat(500) + "x"]) {
        assert.equal(await codeOf(() => carrier.get(path)), "BAD_NAME", `get ${JSON.stringify(path)}`);
        assert.equal(
          await codeOf(() => carrier.put!(path, bytesOf("x"), ABSENT)),
          "BAD_NAME",
          `put ${JSON.stringify(path)}`,
        );
        assert.equal(await codeOf(() => carrier.remove!(path)), "BAD_NAME", `remove ${JSON.stringify(path)}`);
      }
      for (const prefix of ["..", "../", "/", "a", "a//", "./"])
        assert.equal(await codeOf(() => listOf(carrier, prefix)), "BAD_NAME", `list ${JSON.stringify(prefix)}`);
    }),
  },
];
