// Crash writer: a process that writes to a directory and kills itself with SIGKILL at its n-th change of the disk. A write is cut in half.
//
//   node crash-writer.ts <folder> <n> create|replace|remove

import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

const [, , folder = "", kill = "", scenario = ""] = process.argv;
let changes = 0;

/** Whether the process dies now, before the change. */
function isLast(): boolean {
  changes += 1;
  return changes === Number(kill);
}

function die(): Promise<never> {
  process.kill(process.pid, "SIGKILL");
  // The signal is on its way; nothing else happens.
  return new Promise(() => undefined);
}

type Call = (...args: any[]) => Promise<any>;
const patched = fs as unknown as Record<string, Call>;
for (const name of ["link", "mkdir", "rename", "unlink"]) {
  const real = patched[name]!;
  patched[name] = async (...args) => (isLast() ? die() : real(...args));
}
const open = patched["open"]!;
patched["open"] = async (...args) => {
  const handle = (await open(...args)) as fs.FileHandle;
  const { writeFile, sync } = handle;
  handle.writeFile = async (data) => {
    const bytes = data as Uint8Array;
    if (isLast()) return (await writeFile.call(handle, bytes.subarray(0, bytes.length / 2)), die());
    return writeFile.call(handle, bytes);
  };
  handle.sync = async () => (isLast() ? die() : sync.call(handle));
  return handle;
};
syncBuiltinESMExports();

const { openCarrier } = await import("../../../src/federation/index.ts");
const { PORTS } = await import("./real-ports.ts");
const { noise } = await import("../carrier-cases.ts");
const carrier = await openCarrier(folder, PORTS);
const path = "edge7/56475aa75463474c/checkpoint";
if (scenario === "create") await carrier.put!(path, noise(50_000, 2), { absent: true });
else if (scenario === "remove") await carrier.remove!(path);
else {
  const file = await carrier.get(path);
  if (file === undefined || file === "unchanged") throw new Error(`Expected ${path}.`);
  await carrier.put!(path, noise(50_000, 2), { match: file.etag });
}
process.stdout.write(String(changes));
