import { describe, expect, test } from "vitest";
import {
  evidenceText,
  originOfEvidence,
  verifyEvidence,
  type BranchEvidence,
} from "../../../src/federation/home/fork-evidence.ts";
import { KeyHistory } from "../../../src/federation/index.ts";
import { sha256Hex } from "../../../src/base/index.ts";
import { signingKeyOf } from "../../../src/receipts/index.ts";
import { Reader, Site } from "./forking-site.ts";
import { Chance } from "./seeded.ts";

const key = signingKeyOf(Buffer.alloc(32, 9), "site");
const put = (name: string): { op: "put"; k: string } => ({ op: "put", k: sha256Hex(name) });
const puts = (prefix: string, count: number): { op: "put"; k: string }[] =>
  Array.from({ length: count }, (_, i) => put(`${prefix} ${i}`));

/** Two branches with `at` common records. */
function forkedAt(at: number, left: number, right: number): { readonly a: Site; readonly b: Site } {
  const a = new Site(key).write(...puts("common", at));
  const b = a.backup().write(...puts("right", right));
  return { a: a.write(...puts("left", left)), b };
}

describe("T-03: a site that signs two logs", () => {
  test("readers that meet directly both quarantine it after the last common record", () => {
    for (const [at, left, right] of [
      [0, 1, 1],
      [5, 3, 3],
      [5, 1, 9],
      [8, 2, 1],
    ] as const) {
      const { a, b } = forkedAt(at, left, right);
      const [x, y] = [new Reader(key.vkey), new Reader(key.vkey)];
      expect(x.take(a.handOut())).toBe("taken");
      expect(y.take(b.handOut())).toBe("taken");
      x.meet(y);
      expect([x.quarantined?.at, y.quarantined?.at]).toEqual([at, at]);
      expect(x.visible()).toHaveLength(at);
      expect(x.hash()).toBe(y.hash());
    }
  });

  test("readers that never meet learn of it through a third one, which has neither branch to the end", () => {
    const { a, b } = forkedAt(7, 4, 2);
    const [x, y, relay] = [new Reader(key.vkey), new Reader(key.vkey), new Reader(key.vkey)];
    x.take(a.handOut());
    y.take(b.handOut());
    x.meet(relay);
    expect(relay.quarantined).toBeUndefined();
    relay.meet(y);
    relay.meet(x);
    for (const reader of [x, y, relay]) expect(reader.quarantined?.at).toBe(7);
    expect(new Set([x, y, relay].map((reader) => reader.hash())).size).toBe(1);
  });

  test("of several forks the first place counts, in any order of meetings", () => {
    const chance = new Chance(3);
    for (let round = 0; round < 20; round += 1) {
      const trunk = new Site(key).write(...puts("common", 4));
      const early = trunk.backup().write(...puts("early", 3));
      const late = trunk
        .write(...puts("trunk", 4))
        .backup()
        .write(...puts("late", 2));
      const sites = [early, late, trunk.write(...puts("end", 2))];
      const readers = sites.map((site) => {
        const reader = new Reader(key.vkey);
        reader.take(site.handOut());
        return reader;
      });
      // Readers keep meeting; the last rounds spread what was found.
      for (let meeting = 0; meeting < 12; meeting += 1) {
        const [one, other] = chance.shuffled(readers);
        one!.meet(other!);
      }
      expect(readers.map(({ quarantined }) => quarantined?.at)).toEqual([4, 4, 4]);
      expect(new Set(readers.map((reader) => reader.hash())).size).toBe(1);
    }
  });

  test("evidence verifies offline with the first vkey alone, and is the same text on both sides", () => {
    const { a, b } = forkedAt(300, 2, 40);
    const [x, y] = [new Reader(key.vkey), new Reader(key.vkey)];
    const [left, right] = [a.handOut(), b.handOut()];
    x.take(left);
    x.take(right);
    y.take(right);
    y.take(left);
    const text = x.quarantined!.evidence;
    expect(y.quarantined!.evidence).toBe(text);
    expect(originOfEvidence(text)).toBe(key.origin);
    expect(verifyEvidence(text, KeyHistory.genesis(key.vkey)).at).toBe(300);
    // It grows with the logarithm of the log.
    expect(text.length).toBeLessThan(6_000);
  });

  test("no byte of evidence can be changed, and a site that did not fork cannot be accused", () => {
    const { a, b } = forkedAt(2, 1, 2);
    const reader = new Reader(key.vkey);
    const [left, right] = [a.handOut(), b.handOut()];
    reader.take(left);
    reader.take(right);
    const { evidence } = reader.quarantined!;
    const history = KeyHistory.genesis(key.vkey);
    for (let at = 0; at < evidence.length; at += 1)
      for (const other of ["0", "A", '"']) {
        const changed = evidence.slice(0, at) + other + evidence.slice(at + 1);
        if (changed !== evidence) expect(() => verifyEvidence(changed, history), `${at}`).toThrow();
      }
    const found = verifyEvidence(evidence, history) as BranchEvidence;
    const [one, two] = found.branches;
    for (const accusation of [
      { ...found, branches: [one, one] as const },
      { ...found, at: 1 },
      { ...found, branches: [one, { ...two, leaf: one.leaf }] as const },
      { ...found, branches: [one, { ...one, leaf: two.leaf }] as const },
    ])
      expect(() => verifyEvidence(evidenceText(accusation), history)).toThrow(
        expect.objectContaining({ code: "CHECKPOINT_INVALID" }),
      );
    const other = signingKeyOf(Buffer.alloc(32, 10), "site");
    expect(() => verifyEvidence(evidence, KeyHistory.genesis(other.vkey))).toThrow(
      expect.objectContaining({ code: "CHECKPOINT_INVALID" }),
    );
  });

  test("a relay that changes a record is no fork of the site", () => {
    const log = new Site(key).write(...puts("x", 4)).handOut();
    const reader = new Reader(key.vkey);
    reader.take({
      texts: log.texts.slice(0, 2),
      checkpoint: new Site(key).write(...puts("x", 2)).handOut().checkpoint,
    });
    const texts = log.texts.map((text, i) => (i === 1 ? text.replace(/"k":"./, '"k":"0') : text));
    expect(texts).not.toEqual(log.texts);
    expect(() => reader.take({ ...log, texts })).toThrow("the relay changed a record");
    expect(reader.quarantined).toBeUndefined();
    expect(reader.take(log)).toBe("taken");
  });
});

describe("T-10: a store that was restored from a backup", () => {
  function published(): { readonly old: Site; readonly restored: Site; readonly peer: Reader } {
    const old = new Site(key).write(...puts("before", 3));
    const restored = old.backup();
    const peer = new Reader(key.vkey);
    peer.take(old.write(...puts("lost", 2)).handOut());
    return { old, restored, peer };
  }
  const headsOfOneSize = (site: Site): number =>
    site.signed.filter((one, i) =>
      site.signed.some(
        (other, j) => j < i && other.origin === one.origin && other.size === one.size && other.root !== one.root,
      ),
    ).length;

  test("sync first: it takes its own records back and continues", () => {
    const { restored, peer } = published();
    expect(restored.meet({ texts: peer.texts, checkpoint: peer.checkpoint! })).toBe("healed");
    expect(peer.take(restored.write(put("after")).handOut())).toBe("taken");
    expect(restored.origin).toBe(key.origin);
    expect(peer.texts).toHaveLength(6);
    expect(headsOfOneSize(restored)).toBe(0);
  });

  test("write first: it closes the log, and continues in an epoch with what only it has", () => {
    const { restored, peer } = published();
    restored.write(put("new 1"), put("new 2"));
    expect(restored.meet({ texts: peer.texts, checkpoint: peer.checkpoint! })).toBe("epoch");
    expect(restored.origin).toBe(`${key.origin}/2`);
    const log = restored.handOut();
    // The peer keeps the first log as it is, and takes the epoch under the key it knows.
    const epoch = new Reader(peer.history.forEpoch(restored.origin).current.vkey);
    expect(epoch.take(log)).toBe("taken");
    // It sorts after the log that it follows.
    expect(epoch.visible()[0]).toMatchObject({ n: 1, c: 6, y: { [key.origin]: 5 } });
    expect(epoch.visible().map(({ k }) => k)).toEqual([put("new 1").k, put("new 2").k]);
    expect(peer.take({ texts: peer.texts, checkpoint: peer.checkpoint! })).toBe("known");
    expect(peer.quarantined).toBeUndefined();
    expect(headsOfOneSize(restored)).toBe(0);
  });

  test("a second restore opens a third epoch", () => {
    const { restored, peer } = published();
    restored.write(put("new"));
    restored.meet({ texts: peer.texts, checkpoint: peer.checkpoint! });
    const again = restored.backup();
    const second = restored.write(put("lost again")).handOut();
    again.write(put("newer"));
    expect(again.meet(second)).toBe("epoch");
    expect(again.origin).toBe(`${key.origin}/3`);
    expect(headsOfOneSize(again)).toBe(0);
  });

  test("a copy without the key is another origin", () => {
    const { peer } = published();
    const stranger = new Site(signingKeyOf(Buffer.alloc(32, 11), "site")).write(put("copy"));
    expect(stranger.origin).not.toBe(key.origin);
    expect(() => peer.take(stranger.handOut())).toThrow(expect.objectContaining({ code: "NOT_ADMITTED" }));
  });
});
