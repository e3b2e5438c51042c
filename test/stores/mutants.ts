// Mutants: stores that break one promise each, to see that the store cases notice.
//
// Each stands in front of a real store and changes what goes in or comes out; none knows the cases.

import type {
  ClaimedItem,
  ClaimedTurn,
  NewItem,
  Outcome,
  RunRecord,
  Store,
  TurnWrite,
  Write,
} from "../../src/kernel/index.ts";

export interface Mutant {
  /** The promise it breaks. */
  readonly name: string;
  wrap(store: Store, clock: { now(): number }): Store;
}

type Changes = { readonly [K in keyof Store]?: unknown };

/** The store with some methods replaced. */
function changed(store: Store, changes: Changes): Store {
  return new Proxy(store, {
    get(target, key) {
      if (Object.hasOwn(changes, key)) return changes[key as keyof Store];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

type Rewrite = (write: Write, store: Store) => Write | Promise<Write>;
type Answer = (outcome: Outcome, write: Write, store: Store) => Outcome | Promise<Outcome>;

/** The store with every write or every outcome replaced. */
function writing(store: Store, rewrite: Rewrite, answer: Answer = (outcome) => outcome): Store {
  return changed(store, {
    async write(writes: readonly Write[]) {
      const rewritten = [];
      for (const write of writes) rewritten.push(await rewrite(write, store));
      const outcomes = await store.write(rewritten);
      const answers = [];
      for (const [n, outcome] of outcomes.entries()) answers.push(await answer(outcome, writes[n] as Write, store));
      return answers;
    },
  });
}

function rewriting(name: string, rewrite: Rewrite, answer?: Answer): Mutant {
  return { name, wrap: (store) => writing(store, rewrite, answer) };
}
function answering(name: string, answer: Answer): Mutant {
  return rewriting(name, (write) => write, answer);
}
function turns(name: string, rewrite: (turn: TurnWrite, store: Store) => TurnWrite | Promise<TurnWrite>): Mutant {
  return rewriting(name, (write, store) => (write.write === "turn" ? rewrite(write, store) : write));
}
function items(name: string, rewrite: (item: NewItem) => NewItem): Mutant {
  return turns(name, (turn) => ({ ...turn, items: turn.items.map(rewrite) }));
}
function methods(name: string, change: (store: Store, clock: { now(): number }) => Changes): Mutant {
  return { name, wrap: (store, clock) => changed(store, change(store, clock)) };
}
function records(name: string, change: (record: RunRecord) => RunRecord): Mutant {
  return methods(name, (store) => ({
    findRun: async (id: string) => {
      const record = await store.findRun(id);
      return record && change(record);
    },
    listRuns: async (filter: Parameters<Store["listRuns"]>[0]) => (await store.listRuns(filter)).map(change),
  }));
}

async function currentToken(store: Store, run: number): Promise<string | undefined> {
  return (await store.pulse([run]))[0]?.token;
}

function without<T extends object, K extends keyof T>(record: T, key: K): Omit<T, K> {
  const { [key]: _, ...rest } = record;
  return rest;
}

const fences: readonly Mutant[] = [
  rewriting("the token of a turn is not checked", async (write, store) =>
    write.write === "turn" || write.write === "stop"
      ? { ...write, token: (await currentToken(store, write.run)) ?? write.token }
      : write,
  ),
  {
    name: "the token of an item is not checked",
    wrap(store) {
      const last = new Map<string, string>();
      const remember = (run: number, item: string, token: string) => last.set(`${run} ${item}`, token);
      const fresh = (run: number, item: string, token: string) => last.get(`${run} ${item}`) ?? token;
      return writing(
        store,
        (write) => {
          if (write.write === "item-end" || write.write === "item-back")
            return { ...write, token: fresh(write.run, write.item, write.token) };
          if (write.write !== "turn") return write;
          for (const item of write.items) if (item.claim) remember(write.run, item.item, item.claim.token);
          const finished = write.finished.map(({ item, token }) => ({ item, token: fresh(write.run, item, token) }));
          return { ...write, finished };
        },
        (outcome, write) => {
          if (write.write === "claim-items")
            for (const item of outcome as readonly ClaimedItem[]) remember(item.run, item.item, item.token);
          return outcome;
        },
      );
    },
  },
  turns("finished items do not fence the commit", (turn) => ({
    ...turn,
    finished: [],
    dropped: [...turn.dropped, ...turn.finished.map(({ item }) => item)],
  })),
  turns("the head of a commit is not checked", async (turn, store) => {
    const record = (await store.listRuns({ limit: 1_000 })).find(({ run }) => run === turn.run);
    if (record === undefined || record.head === turn.head) return turn;
    const shift = record.head - turn.head;
    return { ...turn, head: record.head, entries: turn.entries.map((entry) => ({ ...entry, seq: entry.seq + shift })) };
  }),
  answering("a repeated commit is not recognised", (outcome) =>
    "status" in outcome && outcome.status === "already-committed" ? { status: "lease-lost" } : outcome,
  ),
  answering("every commit is answered committed", (outcome, write) =>
    write.write === "turn" && "status" in outcome && outcome.status !== "committed"
      ? { status: "committed", more: false, children: [] }
      : outcome,
  ),
  {
    name: "a void write takes the rest of its batch along",
    wrap: (store) =>
      changed(store, {
        async write(writes: readonly Write[]) {
          let isVoid = false;
          const outcomes: Outcome[] = [];
          for (const write of writes) {
            const outcome: Outcome = isVoid ? { status: "lease-lost" } : ((await store.write([write]))[0] as Outcome);
            if ("status" in outcome && outcome.status === "lease-lost") isVoid = true;
            outcomes.push(outcome);
          }
          return outcomes;
        },
      }),
  },
  {
    name: "the writes of a batch are applied in reverse",
    wrap: (store) =>
      changed(store, {
        write: async (writes: readonly Write[]) => [...(await store.write(writes.toReversed()))].reverse(),
      }),
  },
  methods("a batch has an answer too many", (store) => ({
    write: async (writes: readonly Write[]) => [...(await store.write(writes)), { status: "committed" }],
  })),
];

const turnMutants: readonly Mutant[] = [
  rewriting(
    "a turn is answered committed without being written",
    (write) =>
      write.write === "turn"
        ? { write: "message", to: "\u0007nobody", arrival: { type: "StateSet", target: "", data: "" }, once: false }
        : write,
    (outcome, write) => (write.write === "turn" ? { status: "committed", more: false, children: [] } : outcome),
  ),
  turns("a release forgets what arrived since the last read (lost wake-up)", async (turn, store) => {
    const arrivals = (await store.pulse([turn.run]))[0]?.arrivals ?? 0;
    return turn.then === "release" ? { ...turn, read: Math.max(turn.read, arrivals) } : turn;
  }),
  answering("a turn is due only before its first message (lost wake-up)", (outcome, write) =>
    write.write === "claim-turns"
      ? (outcome as readonly ClaimedTurn[]).filter((turn) => turn.inbox.length === 0)
      : outcome,
  ),
  answering("more is never true", (outcome) => ("more" in outcome ? { ...outcome, more: false } : outcome)),
  answering("more is always true", (outcome) => ("more" in outcome ? { ...outcome, more: true } : outcome)),
  turns("nothing is ever read", (turn) => ({ ...turn, read: 0 })),
  turns("a turn is never given back", (turn) => (turn.then === "release" ? { ...turn, then: "hold" } : turn)),
  turns("a turn is always given back", (turn) => (turn.then === "hold" ? { ...turn, then: "release" } : turn)),
  turns("an end is taken for a release", (turn) =>
    turn.then === "hold" || turn.then === "release" ? turn : { ...turn, then: "release" },
  ),
  turns("every end is a completion", (turn) =>
    turn.then === "hold" || turn.then === "release" ? turn : { ...turn, then: "completed" },
  ),
  turns("dropped items stay", (turn) => ({ ...turn, dropped: [] })),
  turns("messages of a turn get lost", (turn) => ({ ...turn, messages: [] })),
  turns("messages of a turn by id get lost", (turn) => ({
    ...turn,
    messages: turn.messages.filter(({ to }) => typeof to === "number"),
  })),
  turns("children are not started", (turn) => ({ ...turn, children: [] })),
  turns("a child whose id is taken is passed over in silence", async (turn, store) => {
    const free = [];
    const seen = new Set<string>();
    for (const child of turn.children) {
      if (seen.has(child.run.id) || (await store.findRun(child.run.id)) !== undefined) continue;
      seen.add(child.run.id);
      free.push(child);
    }
    return { ...turn, children: free };
  }),
  turns("a detached child is like any other", (turn) => ({
    ...turn,
    children: turn.children.map((child) => ({ ...child, detached: false })),
  })),
  turns("every child is detached", (turn) => ({
    ...turn,
    children: turn.children.map((child) => ({ ...child, detached: true })),
  })),
  turns("a child is never its starter's", (turn) => ({
    ...turn,
    children: turn.children.map((child) => without(child, "claim")),
  })),
  turns("messages to a run that is gone go to the newest one", async (turn, store) => {
    const messages = [];
    for (const { to, arrival } of turn.messages) {
      const [pulse] = typeof to === "number" ? await store.pulse([to]) : [true];
      const [newest] = await store.listRuns({ limit: 1, statuses: ["queued", "waiting"] });
      messages.push({ to: pulse === undefined ? (newest?.run ?? to) : to, arrival });
    }
    return { ...turn, messages };
  }),
  rewriting(
    "an ended run is resumed by a message",
    (write) => write,
    async (outcome, write, store) => {
      if (write.write !== "message" || !("status" in outcome) || outcome.status !== "ended") return outcome;
      return { status: "committed", run: (await store.findRun(write.to))?.run ?? 0 };
    },
  ),
  records("unread messages are not counted", (record) => ({ ...record, unread: 0 })),
];

const startMutants: readonly Mutant[] = [
  answering("every start is answered started", (outcome) =>
    "status" in outcome && outcome.status === "exists" ? { ...outcome, status: "started" } : outcome,
  ),
  answering("a start that exists answers with what was asked", (outcome, write) =>
    write.write === "start" && "first" in outcome
      ? { ...outcome, first: { ...outcome.first, data: write.run.started } }
      : outcome,
  ),
  rewriting("a run is never its starter's", (write) => (write.write === "start" ? without(write, "claim") : write)),
  rewriting("an ended run's id can be started again", async (write, store) => {
    if (write.write !== "start") return write;
    const taken = await store.findRun(write.run.id);
    return taken?.endedAt === undefined ? write : { ...write, run: { ...write.run, id: `${write.run.id} again` } };
  }),
  {
    name: "ids are compared as a lenient collation does",
    wrap(store) {
      const plain = (id: string) => id.normalize("NFKD").replace(/\p{M}/gu, "").trim().toLowerCase();
      const collated = writing(store, (write) => {
        if (write.write === "start") return { ...write, run: { ...write.run, id: plain(write.run.id) } };
        if (write.write === "message")
          return { ...write, to: plain(write.to), arrival: { ...write.arrival, target: plain(write.arrival.target) } };
        return write;
      });
      return changed(collated, { findRun: (id: string) => store.findRun(plain(id)) });
    },
  },
  methods("an unknown id has the newest run", (store) => ({
    findRun: async (id: string) => (await store.findRun(id)) ?? (await store.listRuns({ limit: 1 }))[0],
  })),
  records("tags are lost", (record) => ({ ...record, tags: [] })),
  rewriting("messages that may come once may come twice", (write) =>
    write.write === "message" ? { ...write, once: false } : write,
  ),
  rewriting("every message may come once only", (write) =>
    write.write === "message" ? { ...write, once: true } : write,
  ),
  {
    name: "of two concurrent messages that may come once both are kept",
    wrap(store) {
      let busy = 0;
      return changed(store, {
        async write(writes: readonly Write[]) {
          busy += 1;
          const alone = busy === 1;
          const relaxed = writes.map((write) =>
            write.write === "message" && !alone ? { ...write, once: false } : write,
          );
          try {
            return await store.write(relaxed);
          } finally {
            busy -= 1;
          }
        },
      });
    },
  },
  {
    name: "a message that may come once is refused only while the first is unread",
    wrap: (store) =>
      writing(store, async (write) => {
        if (write.write !== "message" || !write.once) return write;
        const record = await store.findRun(write.to);
        const unread = record === undefined ? [] : await store.readInbox(record.run, 0);
        return unread.length === 0 ? { ...write, once: false } : write;
      }),
  },
];

const stopMutants: readonly Mutant[] = [
  answering("a stopped run goes on by itself", async (outcome, write, store) => {
    if (write.write === "stop")
      for (const record of await store.listRuns({ limit: 100, statuses: ["blocked", "determinism_violation"] }))
        await store.write([{ write: "resume", id: record.id }]);
    return outcome;
  }),
  rewriting(
    "a stop is answered but not written",
    (write) => (write.write === "stop" ? { write: "resume", id: "\u0007nobody" } : write),
    (outcome, write) => (write.write === "stop" ? { status: "committed" } : outcome),
  ),
  answering("every resume is answered committed", (outcome, write) =>
    write.write === "resume" ? { status: "committed", run: 1 } : outcome,
  ),
  rewriting(
    "resume does nothing",
    (write) => (write.write === "resume" ? { ...write, id: "\u0007nobody" } : write),
    (outcome, write) => (write.write === "resume" ? { status: "committed", run: 1 } : outcome),
  ),
  records("evidence is lost", (record) => ({ ...record, evidence: undefined })),
];

const claimMutants: readonly Mutant[] = [
  {
    name: "a turn may be claimed twice",
    wrap(store) {
      const before: ClaimedTurn[] = [];
      return writing(
        store,
        (write) => write,
        (outcome, write) => {
          if (write.write !== "claim-turns") return outcome;
          const claimed = outcome as readonly ClaimedTurn[];
          const again = before.splice(0, write.tokens.length - claimed.length);
          before.push(...claimed);
          return [...claimed, ...again];
        },
      );
    },
  },
  {
    name: "an item may be claimed twice",
    wrap(store) {
      const before: ClaimedItem[] = [];
      return writing(
        store,
        (write) => write,
        (outcome, write) => {
          if (write.write !== "claim-items") return outcome;
          const claimed = outcome as readonly ClaimedItem[];
          const again = before.splice(0, write.tokens.length - claimed.length);
          before.push(...claimed);
          return [...claimed, ...again];
        },
      );
    },
  },
  rewriting("turns of unnamed definitions are claimed", async (write, store) =>
    write.write === "claim-turns"
      ? {
          ...write,
          definitions: [...new Set((await store.listRuns({ limit: 100 })).map((record) => record.definition))],
        }
      : write,
  ),
  {
    name: "items of unnamed tasks are claimed",
    wrap(store) {
      const names = new Set<string>();
      return writing(store, (write) => {
        if (write.write === "turn") for (const item of write.items) names.add(item.name);
        return write.write === "claim-items" ? { ...write, names: [...names] } : write;
      });
    },
  },
  rewriting("timers are tasks", (write) =>
    write.write === "turn"
      ? { ...write, items: write.items.map((item) => ({ ...without(item, "availableAt"), kind: "task" as const })) }
      : write,
  ),
  rewriting("urgency does not count", (write) => {
    if (write.write === "start") return { ...write, run: { ...write.run, priority: 0 } };
    return write.write === "turn" ? { ...write, items: write.items.map((item) => ({ ...item, priority: 0 })) } : write;
  }),
  rewriting("a claim takes one more than it may", (write) =>
    write.write === "claim-turns"
      ? { ...write, tokens: [...write.tokens, `${write.worker} ${write.tokens.join()}`] }
      : write,
  ),
  methods("a pulse hides the token", (store) => ({
    pulse: async (runs: readonly number[]) =>
      (await store.pulse(runs)).map((pulse) => ({ ...pulse, token: undefined })),
  })),
  answering("a claimed turn comes without its inbox", (outcome, write) =>
    write.write === "claim-turns"
      ? (outcome as readonly ClaimedTurn[]).map((turn) => ({ ...turn, inbox: [] }))
      : outcome,
  ),
];

const itemMutants: readonly Mutant[] = [
  items("items and timers are ready a millisecond early", (item) =>
    item.availableAt === undefined ? item : { ...item, availableAt: item.availableAt - 1 },
  ),
  items("items and timers are ready a millisecond late", (item) =>
    item.availableAt === undefined ? item : { ...item, availableAt: item.availableAt + 1 },
  ),
  items("an item is never its maker's", (item) => without(item, "claim")),
  items("an item is claimed with the data of entry 1", (item) => ({ ...item, seq: 1 })),
  rewriting("an item is answered ended but its result is lost", (write) =>
    write.write === "item-end" ? { ...write, write: "item-back", attempt: 0 } : write,
  ),
  rewriting("an item given back forgets its attempt", (write) =>
    write.write === "item-back" ? { ...write, attempt: 0 } : write,
  ),
  rewriting("an item given back forgets its failures", (write) =>
    write.write === "item-back" ? without(write, "failures") : write,
  ),
  rewriting("an item given back is ready at once", (write) =>
    write.write === "item-back" ? without(write, "availableAt") : write,
  ),
  rewriting("fire-due knows no limit", (write) => (write.write === "fire-due" ? { ...write, limit: 1_000 } : write)),
  answering("fire-due does not know what is next", (outcome) =>
    "nextAt" in outcome ? { ...outcome, nextAt: undefined } : outcome,
  ),
  answering("a timer fires twice", async (outcome, _write, store) => {
    if (!("nextAt" in outcome)) return outcome;
    for (const run of outcome.runs) {
      const record = (await store.listRuns({ limit: 100 })).find((other) => other.run === run);
      const row = (await store.readInbox(run, 0)).at(-1);
      if (record && row) await store.write([{ write: "message", to: record.id, arrival: row, once: false }]);
    }
    return outcome;
  }),
  rewriting("timers never fire", (write) => (write.write === "fire-due" ? { ...write, limit: 0 } : write)),
];

const leaseMutants: readonly Mutant[] = [
  methods("a worker takes over from itself", (store) => ({ reap: () => store.reap(-1) })),
  methods("nobody takes over", () => ({ reap: async () => ({ workers: 0, turns: 0, items: 0 }) })),
  methods("a lease that expires now is still held", (store) => ({
    registerWorker: (name: string, leaseMs: number) => store.registerWorker(name, leaseMs + 1),
  })),
  methods("a lease is lost a millisecond early", (store) => ({
    registerWorker: (name: string, leaseMs: number) => store.registerWorker(name, leaseMs - 1),
  })),
  methods("renewing always succeeds", (store) => ({
    renewLease: async (worker: number, leaseMs: number) => (await store.renewLease(worker, leaseMs), true),
  })),
  methods("renewing does not lengthen the lease", () => ({ renewLease: async () => true })),
  methods("a released worker keeps what it holds", () => ({ releaseWorker: async () => undefined })),
  methods("a release counts as a takeover", (store) => ({
    async releaseWorker(worker: number) {
      await store.renewLease(worker, 0);
      await store.reap(-1);
    },
  })),
  {
    name: "worker numbers are used again",
    wrap(store) {
      let last: number | undefined;
      return changed(store, {
        registerWorker: async (name: string, leaseMs: number) => (last ??= await store.registerWorker(name, leaseMs)),
      });
    },
  },
  methods("a run is never blocked", (store) => ({
    async reap(self: number) {
      const reaped = await store.reap(self);
      for (const record of await store.listRuns({ limit: 100, statuses: ["blocked"] }))
        await store.write([{ write: "resume", id: record.id }]);
      return reaped;
    },
  })),
  methods("a run is blocked at the first takeover", (store) => ({
    async reap(self: number) {
      const reaped = await store.reap(self);
      const worker = await store.registerWorker("mutant", 1e9);
      const due = await store.listRuns({ limit: 100, statuses: ["queued"] });
      const definitions = due.map((record) => record.definition);
      const tokens = due.map((record) => `mutant ${record.run} ${worker}`);
      if (reaped.turns > 0) {
        const [claimed] = await store.write([{ write: "claim-turns", worker, tokens, definitions }]);
        for (const { record, token } of claimed)
          await store.write([{ write: "stop", run: record.run, token, status: "blocked", evidence: "{}" }]);
      }
      await store.releaseWorker(worker);
      return reaped;
    },
  })),
];

const readMutants: readonly Mutant[] = [
  methods("a list is oldest first", (store) => ({
    listRuns: async (filter: Parameters<Store["listRuns"]>[0]) => (await store.listRuns(filter)).toReversed(),
  })),
  ...(["before", "tag", "definition", "statuses"] as const).map((part) =>
    methods(`a list ignores ${part}`, (store) => ({
      listRuns: (filter: Parameters<Store["listRuns"]>[0]) => store.listRuns(without(filter, part) as typeof filter),
    })),
  ),
  methods("a list ignores its limit", (store) => ({
    listRuns: (filter: Parameters<Store["listRuns"]>[0]) => store.listRuns({ ...filter, limit: 1_000 }),
  })),
  methods("tags match by their beginning", (store) => ({
    async listRuns(filter: Parameters<Store["listRuns"]>[0]) {
      const { tag, ...rest } = filter;
      const found = await store.listRuns(rest);
      return tag === undefined
        ? found
        : found.filter((record) => record.tags.some((other) => other.toLowerCase().startsWith(tag.toLowerCase())));
    },
  })),
  methods("a journal is always read from its beginning", (store) => ({
    readJournal: (run: number, _after: number, limit?: number) => store.readJournal(run, 0, limit),
  })),
  methods("a journal is read without limit", (store) => ({
    readJournal: (run: number, after: number) => store.readJournal(run, after),
  })),
  methods("an inbox is always read from its beginning", (store) => ({
    readInbox: (run: number) => store.readInbox(run, 0),
  })),
  methods("nobody notices other connections", () => ({ hasChanged: () => false })),
  methods("info counts nothing", (store) => ({
    info: async () => ({ ...(await store.info()), runs: {}, workers: [], items: { ready: 9, leased: 9, delayed: 9 } }),
  })),
  methods("prune does not look at the age", (store) => ({ prune: () => store.prune(Number.MAX_SAFE_INTEGER) })),
  methods("prune removes nothing", () => ({ prune: async () => ({ runs: 0 }) })),
  {
    name: "prune takes runs one by one",
    wrap(store) {
      const pruned = new Set<string>();
      return changed(store, {
        async prune(endedBefore: number) {
          const before = pruned.size;
          for (const record of await store.listRuns({ limit: 100 }))
            if (record.endedAt !== undefined && record.endedAt < endedBefore) pruned.add(record.id);
          return { runs: pruned.size - before };
        },
        findRun: async (id: string) => (pruned.has(id) ? undefined : store.findRun(id)),
      });
    },
  },
  methods("a backup is empty", () => ({ backup: async () => undefined })),
  methods("check counts beyond its total", (store) => ({
    async check(onProgress?: (done: number, total: number) => void) {
      onProgress?.(2, 1);
      return store.check();
    },
  })),
  methods("check finds what is not there", () => ({
    check: async () => [{ invariant: "I0", run: undefined, seq: undefined, message: "?" }],
  })),
  methods("time is the wall clock's", (_store, clock) => ({ now: () => clock.now() })),
  methods("time stands still", (store) => {
    const start = store.now();
    return { now: () => start };
  }),
];

function payloads(name: string, change: (data: string) => string): Mutant {
  return {
    name,
    wrap(store) {
      const reading = changed(store, {
        readJournal: async (run: number, after: number, limit?: number) =>
          (await store.readJournal(run, after, limit)).map((entry) => ({ ...entry, data: change(entry.data) })),
        readInbox: async (run: number, after: number) =>
          (await store.readInbox(run, after)).map((row) => ({ ...row, data: change(row.data) })),
      });
      return reading;
    },
  };
}

function reserialised(data: string): string {
  try {
    return JSON.stringify(JSON.parse(data));
  } catch {
    return data;
  }
}

const payloadMutants: readonly Mutant[] = [
  payloads("payloads are normalised", (data) => data.normalize("NFC")),
  payloads("payloads are kept as JSON, not as text", reserialised),
  payloads("payloads are trimmed", (data) => data.trim()),
  payloads("payloads end at NUL", (data) => data.split("\0")[0] ?? ""),
  payloads("payloads lose what is beyond the basic plane", (data) => data.replace(/[\u{10000}-\u{10ffff}]/gu, "?")),
  payloads("payloads lose line separators and byte order marks", (data) => data.replace(/[\u2028\u2029\ufeff]/g, "")),
  payloads("payloads end after 64 KB", (data) => data.slice(0, 65_536)),
  payloads("payloads are unescaped once too often", (data) => data.replaceAll("\\\\", "\\")),
  payloads("an empty payload is null", (data) => (data === "" || data === '""' || data === "{}" ? "null" : data)),
];

export const mutants: readonly Mutant[] = [
  ...fences,
  ...turnMutants,
  ...startMutants,
  ...stopMutants,
  ...claimMutants,
  ...itemMutants,
  ...leaseMutants,
  ...readMutants,
  ...payloadMutants,
];
