// A workflow for agents whose worker dies in the middle of a step, by SIGKILL, as often as its input says.

import { appendFileSync, readFileSync } from "node:fs";
import { promise, workflow } from "reprise";

/** Lines of the file: what was done outside of the store. */
export function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

export const interrupted = workflow(
  "interrupted",
  { ports: { approval: promise<{ ok: boolean }>() } },
  async (ctx, { file, kills }: { readonly file: string; readonly kills: number }) => {
    await ctx.run("first", () => appendFileSync(file, "first\n"));
    await ctx.run("dies", () => {
      appendFileSync(file, "dies\n");
      if (linesOf(file).filter((line) => line === "dies").length <= kills) process.kill(process.pid, "SIGKILL");
    });
    const { ok } = await ctx.promise("approval", { show: "Go on?" });
    await ctx.run("last", () => appendFileSync(file, "last\n"));
    return { ok };
  },
);
