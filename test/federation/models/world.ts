// A world: 2 to 8 peers in a random topology that write, exchange batches over a network that loses, repeats, reorders and damages them,
// and crash. Then the network heals, and the oracle judges. One seed gives one world.

import { createHash } from "node:crypto";
import type { LogRecord, RecordBody } from "../../../src/federation/index.ts";
import { Peer, type Batch, type TakenSnapshot } from "./peer.ts";
import { isLater, referenceHash } from "./reference.ts";
import type { Rules } from "./rules.ts";
import { keysOf, MAX_ROTATIONS, ORIGINS, signing, UNSIGNED } from "./head-signer.ts";
import { Chance } from "./seeded.ts";

interface Message {
  readonly to: Peer;
  readonly batch: Batch;
}

const sha = (text: string): string => createHash("sha256").update(text).digest("hex");
const KEYS = Array.from({ length: 6 }, (_, i) => sha(`artifact ${i}`));
const LINKS = Array.from({ length: 6 }, (_, i) => ({ k: sha(`link ${i}`), s: sha(`slot ${i % 3}`) }));

export class World {
  readonly peers: readonly Peer[];
  readonly snapshots: { readonly by: Peer; readonly taken: TakenSnapshot }[] = [];
  /** Records that were sent, and heads that were asked for. */
  sent = 0;
  asked = 0;
  readonly #chance: Chance;
  readonly #edges: readonly (readonly [Peer, Peer])[];
  readonly #weights: readonly Peer[];
  readonly #rotations = new Map<Peer, number>();
  #messages: Message[] = [];
  #cut = new Set<readonly [Peer, Peer]>();

  constructor(seed: number, rules: Rules, options: { readonly peers?: number; readonly isSigned?: boolean } = {}) {
    const chance = new Chance(seed);
    const count = options.peers ?? 2 + chance.below(7);
    const signer = options.isSigned === true ? signing() : UNSIGNED;
    this.#chance = chance;
    this.peers = chance.shuffled(ORIGINS.slice(0, count)).map((origin) => new Peer(origin, rules, signer));
    // A random tree keeps the peers connected, so some reach others through relays alone; more edges close rings.
    const edges: (readonly [Peer, Peer])[] = this.peers
      .slice(1)
      .map((peer, i) => [this.peers[chance.below(i + 1)]!, peer] as const);
    for (let more = chance.below(count); more > 0; more -= 1) {
      const [a, b] = [chance.pick(this.peers), chance.pick(this.peers)];
      if (a !== b) edges.push([a, b]);
    }
    this.#edges = edges;
    // In every second world one peer writes eight times as much as another.
    const skew = chance.is(0.5) ? 8 : 1;
    this.#weights = [...Array<Peer>(skew).fill(this.peers[0]!), ...this.peers.slice(1)];
  }

  /** Everything that happens before the network heals. */
  run(steps = 30 + this.#chance.below(60)): this {
    for (let step = 0; step < steps; step += 1) this.#step();
    return this;
  }

  #step(): void {
    const chance = this.#chance;
    const dice = chance.unit();
    if (dice < 0.35) this.#write(chance.pick(this.#weights));
    else if (dice < 0.65) this.#pull(...this.#direction(chance.pick(this.#edges)));
    else if (dice < 0.92) this.#deliver();
    else if (dice < 0.97) {
      const by = chance.pick(this.peers);
      this.snapshots.push({ by, taken: by.snapshot() });
    } else this.#cut = new Set(this.#edges.filter(() => chance.is(0.4)));
  }

  #direction([a, b]: readonly [Peer, Peer]): [Peer, Peer] {
    return this.#chance.is(0.5) ? [a, b] : [b, a];
  }

  #write(peer: Peer): void {
    const bodies = Array.from({ length: 1 + this.#chance.below(3) }, () => this.#body(peer)).filter(
      (body) => body !== undefined,
    );
    const first = peer.prepare(bodies);
    if (this.#chance.is(0.3)) {
      // A second sequencer takes the same work at the same time. It finds nothing left to do.
      const second = peer.prepare(bodies);
      peer.append(first);
      peer.append(second);
    } else peer.append(first);
  }

  #body(peer: Peer): RecordBody | undefined {
    const chance = this.#chance;
    const dice = chance.unit();
    if (dice < 0.4) return { op: "put", k: chance.pick(KEYS) };
    if (dice < 0.6) return { op: "put", ...chance.pick(LINKS) };
    const cells = [...peer.cells.keys()];
    if (dice < 0.9) return cells.length === 0 ? undefined : { op: "tomb", x: chance.pick(cells) };
    if (dice < 0.93) return cells.length === 0 ? undefined : { op: "erase", x: chance.pick(cells) };
    const term = (this.#rotations.get(peer) ?? 0) + 1;
    if (dice < 0.97 || term > MAX_ROTATIONS) return { op: "put", k: sha(`${peer.origin} ${chance.unit()}`) };
    this.#rotations.set(peer, term);
    return { op: "key", v: keysOf(peer.origin)[term]!.vkey };
  }

  /** The answer travels, and arrives later, twice, damaged or never. */
  #pull(by: Peer, from: Peer): void {
    const chance = this.#chance;
    for (const origin of from.heads().keys()) {
      const batch = from.batchAfter(origin, by.heads().get(origin) ?? 0);
      if (batch === undefined || chance.is(0.1)) continue;
      this.#messages.push({ to: by, batch: chance.is(0.1) ? this.#damaged(batch) : batch });
      if (chance.is(0.2)) this.#messages.push({ to: by, batch });
    }
  }

  /** A digit of a key in one record is another one: a text that is a record, and was never written. */
  #damaged(batch: Batch): Batch {
    const at = this.#chance.below(batch.texts.length);
    const texts = batch.texts.map((text, i) =>
      i === at ? text.replace(/[0-9a-f](?=[0-9a-f]{20}")/, (digit) => (digit === "0" ? "1" : "0")) : text,
    );
    return { ...batch, texts };
  }

  #deliver(): void {
    for (let count = this.#chance.below(4); count > 0 && this.#messages.length > 0; count -= 1) {
      const [message] = this.#messages.splice(this.#chance.below(this.#messages.length), 1);
      const { to, batch } = message!;
      const isCutOff = [...this.#cut].some(([a, b]) => a === to || b === to);
      if (!isCutOff) to.ingest(batch, this.#chance.is(0.05));
    }
  }

  /** Rounds of pulls over every edge, in both directions, until a round brings nothing. False: the peers do not get there. */
  heal(): boolean {
    this.#messages = [];
    this.#cut.clear();
    for (let round = 0; round < 40; round += 1) if (this.round() === 0) return true;
    return false;
  }

  /** Every peer pulls from each neighbor. Returns how many records were taken. */
  round(): number {
    let taken = 0;
    for (const [a, b] of this.#edges)
      for (const [by, from] of [
        [a, b],
        [b, a],
      ] as const)
        for (const [origin, size] of from.heads()) {
          this.asked += 1;
          for (let cursor = by.heads().get(origin) ?? 0; cursor < size;) {
            const batch = from.batchAfter(origin, cursor);
            if (batch === undefined) break;
            this.sent += batch.texts.length;
            if (by.ingest(batch, false) !== "ingested") break;
            taken += batch.texts.length;
            cursor = batch.checkpoint.size;
          }
        }
    return taken;
  }

  /** What is wrong after the network has healed; undefined: nothing. */
  judge(): string | undefined {
    const written = this.peers.flatMap((peer) => peer.log(peer.origin).records);
    return this.#judgeLogs() ?? this.#judgeStates(written) ?? this.#judgeSnapshots() ?? this.#judgeTombstones(written);
  }

  #judgeLogs(): string | undefined {
    for (const peer of this.peers) {
      const { records } = peer.log(peer.origin);
      if (records.some(({ n }, i) => n !== i + 1)) return `${peer.origin} has a log with a gap or a repeat`;
      for (const other of this.peers)
        if (other.log(peer.origin).texts.join("\n") !== peer.log(peer.origin).texts.join("\n"))
          return `${other.origin} has another log of ${peer.origin}`;
    }
    return undefined;
  }

  #judgeStates(written: readonly LogRecord[]): string | undefined {
    const expected = referenceHash(written);
    const inOrder = (records: readonly LogRecord[]): string => records.map(({ o, n }) => `${o} ${n}`).join("\n");
    const order = inOrder([...written].sort((a, b) => (isLater(a, b) ? 1 : -1)));
    for (const peer of this.peers) {
      if (peer.hash() !== expected) return `${peer.origin} keeps another state than its records have`;
      if (peer.fold(peer.arrived) !== expected) return `${peer.origin} folds to another state`;
      if (inOrder(peer.sorted()) !== order) return `${peer.origin} has another order of records`;
    }
    return undefined;
  }

  #judgeSnapshots(): string | undefined {
    for (const { by, taken } of this.snapshots)
      for (const peer of this.peers)
        if (peer.read(taken) !== taken.hash) return `${peer.origin} reads the snapshot of ${by.origin} differently`;
    return undefined;
  }

  #judgeTombstones(written: readonly LogRecord[]): string | undefined {
    for (const peer of this.peers)
      for (const [tomb, saw] of peer.sawAt) {
        if (saw.some((put) => !isLater(tomb, put))) return "an author saw a record that sorts after its tombstone";
        const puts = written.filter(({ op, k, s }) => op === "put" && (s ? `s:${s}` : `a:${k}`) === tomb.x);
        const seen = new Set(saw.map(({ o, n }) => `${o} ${n}`));
        const isRevived = puts.some(({ o, n, c }) => c > tomb.c && !seen.has(`${o} ${n}`));
        const [line] = [...this.peers[0]!.cells].filter(([id]) => id === tomb.x);
        const isVisible = line !== undefined && line[1].add !== undefined && !line[1].erased && line[1].add.c > tomb.c;
        if (isVisible && !isRevived) return "a tombstone lost against a record that its author had seen";
      }
    return undefined;
  }
}

/** The whole story of a seed: what is wrong with it, or undefined. */
export function storyOf(seed: number, rules: Rules): string | undefined {
  const world = new World(seed, rules, { isSigned: seed % 50 === 0 }).run();
  if (!world.heal()) return "the peers do not come to rest";
  return world.judge();
}
