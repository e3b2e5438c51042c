// Two versions of a workflow that fit each other, and a third that fits neither.

import { promise, workflow } from "reprise";

const ports = { go: promise() };

function parcel(version: number, step: string) {
  return workflow("parcel", { ports, version }, async (ctx) => {
    await ctx.run(step, () => 12);
    await ctx.promise("go");
    return version;
  });
}

export const parcel1 = parcel(1, "weigh");
export const parcel2 = parcel(2, "weigh");
export const parcel3 = parcel(3, "measure");
