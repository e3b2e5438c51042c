// Carriers: the server of a carrier is killed while sites write through it. Sites count with compare and replace, and put files that never
// change. What was acknowledged must be there, byte for byte, and no count may be lost or counted twice.

import { setTimeout as sleep } from "node:timers/promises";
import { openCarrier, type Carrier } from "../../../src/federation/index.ts";
import { CARRIER_CASES, noise } from "../../federation/carrier-cases.ts";
import { PORTS } from "../../federation/carriers/real-ports.ts";
import { startNats, whyNoNats } from "../../servers/nats.ts";
import { startS3, whyNoS3 } from "../../servers/s3.ts";
import { until, type Rig, type Tally, type World } from "../rig.ts";

interface CarrierServer extends AsyncDisposable {
  readonly name: string;
  open(place: string): Promise<Carrier>;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const WRITERS = 4;
const KILLS = 3;
/** How many writes must succeed before the next kill. */
const BETWEEN = 40;
const PATH = "edge7/56475aa75463474c/checkpoint";

async function natsServer(): Promise<CarrierServer> {
  const server = await startNats();
  const open = (place: string): Promise<Carrier> => openCarrier(`${server.url}/${place}`, PORTS);
  return { ...server, name: `nats-server ${server.version}`, open };
}

async function s3Server(): Promise<CarrierServer> {
  const server = await startS3();
  const { env } = server;
  const open = (place: string): Promise<Carrier> =>
    openCarrier(server.urlOf(place), { ...PORTS, env, limits: { pollMs: 20 } });
  return { ...server, open };
}

export const natsCarrier: Rig = rigOf("nats", natsServer, whyNoNats);
export const s3Carrier: Rig = rigOf("s3", s3Server, whyNoS3);

function rigOf(kind: string, start: () => Promise<CarrierServer>, obstacle: () => string | undefined): Rig {
  return {
    name: `${kind}-carrier`,
    title: `a real server of the ${kind} carrier passes every carrier case, and is killed ${KILLS} times under ${WRITERS} writers`,
    shows: "T-07, T-20",
    // The carrier knows no store: one is enough.
    stores: ["sqlite"],
    tested: [],
    rounds: 1,
    obstacle,
    async run(world) {
      await using server = await start();
      world.tally.note("server", server.name);
      for (let round = 0; world.more(); round += 1) {
        for (const [at, one] of CARRIER_CASES.entries()) {
          await one.run({ open: () => server.open(`case-${round}-${at}`), waitMs: 60_000 });
          world.tally.add("carrier cases");
        }
        await writeUnderKills(world, server, `kills-${round}`);
      }
    },
  };
}

async function writeUnderKills(world: World, server: CarrierServer, place: string): Promise<void> {
  const { tally } = world;
  const first = await server.open(place);
  await first.put!(PATH, Buffer.from("0"), { match: null });
  const before = tally.counts.get("acknowledged") ?? 0;
  const untilWritten = (kills: number): Promise<void> =>
    until("writes", () => (tally.counts.get("acknowledged") ?? 0) - before >= (kills + 1) * BETWEEN);
  let isDone = false;
  const writers = Array.from({ length: WRITERS }, (_, id) => write(server, place, id, tally, () => isDone));
  for (let kill = 0; kill < KILLS; kill += 1) {
    await untilWritten(kill);
    await world.sometime(0, 50);
    await server.kill();
    tally.add("kills");
    await world.sometime(0, 200);
    await server.start();
  }
  await untilWritten(KILLS);
  isDone = true;
  const written = await Promise.all(writers);
  const sum = (of: "counted" | "unknown"): number => written.reduce((all, each) => all + each[of], 0);
  const carrier = await server.open(place);
  const found = await carrier.get(PATH);
  const total =
    found === undefined || found === "unchanged" ? 0 : Number(Buffer.from(found.bytes).toString().split(" ")[0]);
  if (total < sum("counted"))
    tally.lost(`${sum("counted")} counts were acknowledged, and the checkpoint says ${total}`);
  if (total > sum("counted") + sum("unknown"))
    tally.doubled(`the checkpoint says ${total}, and ${sum("counted")} were counted`);
  for (const { files } of written)
    for (const [path, seed] of files) {
      const file = await carrier.get(path);
      const isThere = file !== undefined && file !== "unchanged" && Buffer.from(noise(20_000, seed)).equals(file.bytes);
      if (!isThere) tally.lost(`${path} was acknowledged`);
    }
  await Promise.all([first.close(), carrier.close()]);
}

interface Written {
  readonly counted: number;
  /** Writes without an answer: each may have happened. */
  readonly unknown: number;
  readonly files: ReadonlyMap<string, number>;
}

async function write(
  server: CarrierServer,
  place: string,
  id: number,
  tally: Tally,
  isDone: () => boolean,
): Promise<Written> {
  let counted = 0;
  let unknown = 0;
  const files = new Map<string, number>();
  const carrier = await server.open(place);
  for (let n = 1; !isDone(); n += 1) {
    const path = `edge${id}/56475aa75463474c/tile/0/${n}`;
    let isSent = false;
    try {
      if ((await carrier.put!(path, noise(20_000, n), { absent: true })) !== "refused") {
        files.set(path, n);
        tally.add("acknowledged");
      }
      const found = await carrier.get(PATH);
      if (found === undefined || found === "unchanged") throw new Error("the checkpoint is gone");
      const [total = ""] = Buffer.from(found.bytes).toString().split(" ");
      isSent = true;
      // With the writer's name, so that a repeated write recognizes its own bytes.
      const killsBefore = tally.counts.get("kills");
      const put = await carrier.put!(PATH, Buffer.from(`${Number(total) + 1} ${id} ${n}`), { match: found.etag });
      if (put === "refused") {
        // The answer of a write may be lost, and another writer may follow before it is repeated.
        if (tally.counts.get("kills") !== killsBefore) unknown += 1;
        continue;
      }
      counted += 1;
      tally.add("acknowledged");
    } catch {
      tally.add("writes without an answer");
      if (isSent) unknown += 1;
      // The server is down.
      await sleep(20);
    }
  }
  await carrier.close();
  return { counted, unknown, files };
}
