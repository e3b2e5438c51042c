// Site: the name of the store, the caller, what an operator must know, and the peers of a federated site.

import { basename } from "node:path";
import { ENGINE_NAME, withoutPassword } from "../../base/index.ts";
import type { PeerBody, SiteBody, siteOperations } from "../../contract/index.ts";
import type { PeerInfo } from "../../federation/index.ts";
import type { Store } from "../../kernel/index.ts";
import { isScoped, maySeeDefinition } from "../auth/scope.ts";
import type { Caller, HandlersOf, ServerHost } from "../host.ts";
import { payloadToWire } from "../wire-payload.ts";
import { isoOf, viewOf } from "../read/view.ts";

const MAX_PROMISES = 1_000;

export const siteHandlers: HandlersOf<typeof siteOperations> = {
  async getSite({ host, caller }) {
    const { store } = host;
    const { name, kind } = await nameOf(store);
    const { name: by = "anonymous", role = "viewer", definitions, tags } = caller ?? {};
    return {
      name,
      store: kind,
      version: ENGINE_NAME.replace(/^.*[/@]/, ""),
      now: isoOf(store.now()),
      caller: { name: by, role, ...(definitions && { definitions }), ...(tags && { tags }) },
      federated: host.federation !== undefined || (await store.isFederated()),
      executes: host.executes,
      openPromises: await countPromises(store, caller),
      notices: [...host.notices(), ...(await diskNotices(host))],
    };
  },
  async listPeers({ host }) {
    const { federation, store } = host;
    if (federation === undefined) return { waiting: 0, items: [] };
    const { origin, waiting, peers, origins, conflicts } = await federation.status();
    const now = store.now();
    const isForked = new Set(conflicts === 0 ? [] : (await federation.conflicts()).map(({ subject }) => subject));
    return {
      origin,
      waiting,
      items: peers.map((peer) => {
        const records = origins.find((one) => one.origin === peer.origin)?.size;
        return peerOf(peer, records, isForked.has(`origin:${peer.origin}`), now);
      }),
    };
  },
  async listConflicts(call) {
    const { host, query } = call;
    const { showsPayloads } = viewOf(call);
    const found = (await host.federation?.conflicts({ all: query?.all ?? false })) ?? [];
    return {
      items: found.map(({ id, kind, subject, peer, firstSeen, state, resolution, evidence }) => ({
        id,
        kind,
        subject,
        ...(peer !== undefined && { peer }),
        firstSeen: isoOf(firstSeen),
        state,
        ...(resolution !== undefined && { resolution }),
        ...(showsPayloads && { evidence: payloadToWire(evidence, "plain") }),
        ...(state === "open" && { command: `reprise fed resolve ${id} --as '<decision>'` }),
      })),
    };
  },
};

const KINDS: Readonly<Record<string, string>> = {
  sqlite: "SQLite",
  postgres: "PostgreSQL",
  mysql: "MySQL",
  mariadb: "MariaDB",
};

const names = new WeakMap<Store, Promise<{ readonly name: string; readonly kind: string }>>();

/** Read once: it counts every row of the store. */
function nameOf(store: Store): Promise<{ readonly name: string; readonly kind: string }> {
  const known =
    names.get(store) ??
    store.info().then(({ kind, location }) => {
      const place = withoutPassword(location).split(/[?#]/)[0]!;
      return { name: basename(place) || place, kind: KINDS[kind.toLowerCase()] ?? kind };
    });
  names.set(store, known);
  known.catch(() => names.delete(store));
  return known;
}

async function countPromises(store: Store, caller: Caller | undefined): Promise<number> {
  const { promises } = await store.listPromises({ limit: MAX_PROMISES });
  if (!isScoped(caller)) return promises.length;
  const seen = promises.filter(({ definition }) => maySeeDefinition(caller, definition));
  const { tags, run } = caller ?? {};
  if (tags === undefined && run === undefined) return seen.length;
  const records = await store.readRuns([...new Set(seen.map((one) => one.run))]);
  const visible = new Set(
    records.flatMap((record) =>
      record !== undefined &&
      (run ?? record.id) === record.id &&
      (tags?.some((tag) => record.tags.includes(tag)) ?? true)
        ? [record.run]
        : [],
    ),
  );
  return seen.filter((one) => visible.has(one.run)).length;
}

const LITTLE_SPACE = 64 * 1024 * 1024;

async function diskNotices({ store }: ServerHost): Promise<SiteBody["notices"]> {
  const disk = await store.readDiskSpace?.();
  if (disk === undefined || disk.freeBytes > LITTLE_SPACE) return [];
  const text = `The disk of the store is almost full: ${Math.floor(disk.freeBytes / 1024)} KiB are free in ${disk.folder}.`;
  return [{ tone: "bad", text, command: "reprise doctor" }];
}

function peerOf(peer: PeerInfo, records: number | undefined, isForked: boolean, now: number): PeerBody {
  const { name, url, origin, pulledAt, pushedAt, error } = peer;
  const last = Math.max(pulledAt?.getTime() ?? 0, pushedAt?.getTime() ?? 0);
  const made = {
    name,
    ...(url !== undefined && { url: withoutPassword(url) }),
    origin,
    ...(last > 0 && { lastAt: isoOf(last) }),
    ...(records !== undefined && { records }),
    facts: {
      ...(pulledAt !== undefined && { pulledAt: isoOf(pulledAt) }),
      ...(pushedAt !== undefined && { pushedAt: isoOf(pushedAt) }),
      ...(error !== undefined && { code: error.code, failedAt: isoOf(error.at) }),
    },
  };
  if (isForked)
    return {
      ...made,
      state: "forked",
      text: `The log of ${name} has two histories.`,
      command: "reprise fed conflicts",
    };
  if (error !== undefined)
    return { ...made, state: "unreachable", text: error.message, command: `reprise pull ${name}` };
  if (last === 0)
    return {
      ...made,
      state: "never_met",
      text: `This site has not exchanged records with ${name}.`,
      command: `reprise pull ${name}`,
    };
  const ago = Math.max(0, Math.round((now - last) / 1_000));
  return { ...made, state: "in_step", text: `The last exchange was ${ago} s ago.` };
}
