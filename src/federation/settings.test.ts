import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { signingKeyOf } from "../receipts/index.ts";
import { checkSettings } from "./check-settings.ts";
import { readSettings, removePeer, settingsFile, writePeer } from "./settings-file.ts";
import type { FederationSettings } from "./settings.ts";

const HUB = signingKeyOf(Buffer.alloc(32, 1), "hub");
const EDGE = signingKeyOf(Buffer.alloc(32, 2), "edge");
const TOKEN = "0123456789abcdef";
const check = (settings: unknown): ReturnType<typeof checkSettings> =>
  checkSettings(settings as FederationSettings, "createFederation");

describe("settings", () => {
  test("without members publish nothing, admit no peer and reuse no foreign result", () => {
    expect(check({})).toEqual({
      archive: undefined,
      execute: undefined,
      name: undefined,
      peers: [],
      publish: [],
      shards: undefined,
      work: new Map(),
    });
    expect(check({ peers: { hub: { vkey: HUB.vkey } } }).peers).toEqual([
      {
        name: "hub",
        origin: HUB.origin,
        url: undefined,
        vkey: HUB.vkey,
        token: undefined,
        pull: [HUB.origin],
        push: [],
        grants: [],
        memo: { trust: false, sample: 0.05 },
      },
    ]);
  });

  test.each([
    [{ shards: 257 }, "createFederation: shards: expected a whole number from 1 to 256, got 257."],
    [{ peers: { "the hub": { vkey: HUB.vkey } } }, /peers\.the hub: expected a name/],
    [
      { peers: { hub: { vkey: HUB.vkey, tokn: TOKEN } } },
      /peers\.hub: there is no option "tokn"; expected grants, memo/,
    ],
    [{ peers: { hub: { vkey: "hub" } } }, /peers\.hub\.vkey: "hub" is not a vkey/],
    [
      { peers: { hub: { vkey: HUB.vkey, url: "ftp://hub" } } },
      /peers\.hub\.url: "ftp:\/\/hub" begins with "ftp:", and no carrier has this scheme/,
    ],
    [{ peers: { hub: { vkey: HUB.vkey, push: "yes" } } }, /peers\.hub\.push: expected an array of strings, got 'yes'/],
    [{ peers: { hub: { vkey: HUB.vkey, grants: ["delete"] } } }, /peers\.hub\.grants: expected "erase", got 'delete'/],
    [
      { peers: { hub: { vkey: HUB.vkey, memo: { trust: true, sample: 2 } } } },
      /memo\.sample: expected a number from 0 to 1/,
    ],
    [{ peers: { a: { vkey: HUB.vkey }, b: { vkey: HUB.vkey } } }, /peers\.a and peers\.b have the same origin/],
    [{ publish: [{ to: ["hub"], payloads: "full" }] }, /publish\[0\]\.to: there is no peer "hub"; there are no peers/],
    [{ publish: [{ to: ["*"], payloads: "all" }] }, /publish\[0\]\.payloads: expected "full", "hash-only" or "none"/],
    [
      { publish: [{ to: ["*"], definition: ["a"], payloads: "full" }] },
      /publish\[0\]: there is no option "definition"/,
    ],
    [
      { peers: { hub: { vkey: HUB.vkey } }, work: { gpu: "hubb" } },
      /work\.gpu: there is no peer "hubb"; the peers are hub/,
    ],
    [{ archive: 7 }, /archive: expected a string, got 7/],
  ])("%j are refused, and the message names the member", (settings, message) => {
    expect(() => check(settings)).toThrow(message);
  });

  test("a token that is too short is refused without printing it", () => {
    expect(() => check({ peers: { hub: { vkey: HUB.vkey, token: "hunter2" } } })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("hunter2") }),
    );
  });
});

describe("the settings file", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "reprise-settings-test-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  test("is private, and keeps what a person wrote when a peer is added or removed", () => {
    writeFileSync(settingsFile(home), '{"publish":[{"to":["*"],"payloads":"hash-only"}]}', { mode: 0o600 });
    writePeer(home, "hub", { vkey: HUB.vkey, token: TOKEN, url: "https://hub.example.com" });
    writePeer(home, "edge", { vkey: EDGE.vkey });
    expect(statSync(settingsFile(home)).mode & 0o777).toBe(0o600);
    expect(readSettings(home)).toEqual({
      publish: [{ to: ["*"], payloads: "hash-only" }],
      peers: { hub: { vkey: HUB.vkey, token: TOKEN, url: "https://hub.example.com" }, edge: { vkey: EDGE.vkey } },
    });
    expect([removePeer(home, "edge"), removePeer(home, "edge")]).toEqual([true, false]);
    expect(Object.keys(readSettings(home).peers ?? {})).toEqual(["hub"]);
  });

  test("keeps a peer that a rule names, and says which rule", () => {
    writePeer(home, "hub", { vkey: HUB.vkey });
    const text = { ...readSettings(home), publish: [{ to: ["hub"], payloads: "full" }] };
    writeFileSync(settingsFile(home), JSON.stringify(text));
    expect(() => removePeer(home, "hub")).toThrow(/publish\[0\]\.to: there is no peer "hub"/);
    expect(Object.keys(readSettings(home).peers ?? {})).toEqual(["hub"]);
  });

  test("that other users can read, that is no JSON or that has an unknown member is refused with its path", () => {
    const file = settingsFile(home);
    writePeer(home, "hub", { vkey: HUB.vkey, token: TOKEN });
    chmodSync(file, 0o644);
    expect(() => readSettings(home)).toThrow(`${file} is not private`);
    chmodSync(file, 0o600);
    writeFileSync(file, readFileSync(file, "utf8").slice(1));
    expect(() => readSettings(home)).toThrow(`${file} cannot be read`);
    writeFileSync(file, '{"peer":{}}');
    expect(() => readSettings(home)).toThrow(`${file}: there is no option "peer"; expected archive, execute, name`);
    writeFileSync(file, "[]");
    expect(() => readSettings(home)).toThrow(`${file}: expected an object`);
  });

  test("without a file, there are no settings", () => {
    expect(readSettings(home)).toEqual({});
  });
});
