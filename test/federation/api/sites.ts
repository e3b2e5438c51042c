// Sites of one test in one process: stores, homes and folders that are gone afterwards.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, task, workflow, type AnyTask, type Definition } from "reprise";
import { createFederation, type Federation, type FederationOptions } from "reprise/federation";
import { onTestFinished } from "vitest";

export const double = workflow("math.double", async (ctx, n: number) => ctx.run("double", { n }, () => n * 2));
export const secret = workflow("vault.open", async (ctx, pin: string) =>
  ctx.run("open", { pin }, () => `opened ${pin}`),
);
export const render = task("render", { label: "gpu" }, (_ctx, scene: string) => `${scene} in color`);
export const movie = workflow("studio.movie", async (ctx, scene: string) => ctx.task(render, scene));
export const TOKEN = "0123456789abcdef0123456789abcdef";

export const DEFINITIONS: readonly (Definition | AnyTask)[] = [double, secret, movie, render];

export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "reprise-federation-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with a home and, when the site is opened with it, a store. */
export class TestSite {
  readonly name: string;
  readonly folder: string;

  constructor(name: string, folder = freshFolder()) {
    this.name = name;
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  get home(): string {
    return join(this.folder, "home");
  }
  get store(): string {
    return `sqlite:${join(this.folder, "store.db")}`;
  }

  /** The vkey, before the site is configured. */
  async vkey(): Promise<string> {
    await using site = await createFederation({ home: this.home, name: this.name, sync: "manual", logger: false });
    return site.vkey;
  }

  async open(options: Partial<FederationOptions> = {}): Promise<Federation> {
    const site = await createFederation({
      home: this.home,
      name: this.name,
      sync: "manual",
      logger: false,
      ...options,
    });
    onTestFinished(() => site.close());
    return site;
  }

  /** Runs to their end, with an engine of its own. */
  async run(what: Definition, inputs: Readonly<Record<string, unknown>>, tags: readonly string[] = []): Promise<void> {
    await using engine = await createEngine({
      store: this.store,
      definitions: DEFINITIONS as readonly Definition[],
      logger: false,
    });
    for (const [id, input] of Object.entries(inputs))
      await (await engine.start(what, input as undefined, { id, tags })).result().catch(() => undefined);
  }
}
