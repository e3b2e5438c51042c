// docs/tutorial.md, followed word for word with the packed package: every file is saved under the name the page gives,
// every command is run in the order of the page, and the worker is really killed.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installPackage, linkPackage, packPackage, ROOT, runCommand } from "./packed-package.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-tutorial-"));
let unpacked = "";
const workers: { readonly child: ChildProcess; output: string }[] = [];

beforeAll(async () => {
  ({ unpacked } = await packPackage(folder));
}, 120_000);

afterAll(async () => {
  for (const { child } of workers) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

type Part =
  | { readonly kind: "file"; readonly name: string; readonly code: string }
  | { readonly kind: "command"; readonly line: string };

/** Files and commands of the page, in its order. */
function partsOf(page: string): Part[] {
  const found = page.matchAll(/^Save this as `([^`]+)`:\n\n```ts\n([\s\S]*?)^```$|^```sh\n([\s\S]*?)^```$/gm);
  return [...found].flatMap(([, name, code = "", commands = ""]): Part[] =>
    name !== undefined
      ? [{ kind: "file", name, code }]
      : commands
          .trimEnd()
          .split("\n")
          .map((line) => ({ kind: "command", line })),
  );
}

/** The words of a shell command with single quotes. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}

test("the tutorial has files and commands to follow", () => {
  const parts = partsOf(readFileSync(join(ROOT, "docs/tutorial.md"), "utf8"));
  expect(parts.filter(({ kind }) => kind === "file")).toHaveLength(5);
  expect(parts[0]).toEqual({ kind: "command", line: "npx reprise init my-app" });
  expect(parts).toContainEqual({ kind: "command", line: "pkill -KILL -f shipping.ts" });
  expect(wordsOf(`run ship '"parcel 7"' --detach`)).toEqual(["run", "ship", '"parcel 7"', "--detach"]);
});

test(
  "every program and command of the tutorial does what the page says, a killed worker included",
  { timeout: 240_000 },
  async () => {
    const project = join(folder, "my-app");
    const cli = join(unpacked, "dist/cli/main.js");
    const saved = new Map<string, string>();
    // The unpacked package needs its dependencies before the project has any.
    for (const name of ["commander", "croner", "@standard-schema/spec"]) linkPackage(folder, name);

    const succeed = async (args: readonly string[], cwd = project): Promise<string> => {
      const { code, output } = await runCommand(process.execPath, args, cwd);
      expect(code, `${args.join(" ")}: ${output}`).toBe(0);
      return output;
    };
    const startWorker = async (args: readonly string[]): Promise<void> => {
      const child = spawn(process.execPath, [cli, ...args], { cwd: project, stdio: ["ignore", "pipe", "pipe"] });
      const worker = { child, output: "" };
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => void (worker.output += chunk.toString()));
      workers.push(worker);
      await expect.poll(() => worker.output, { timeout: 60_000 }).not.toBe("");
    };

    const follow = async (line: string): Promise<void> => {
      const [program, ...args] = wordsOf(line);
      if (line === "cd my-app") return;
      if (line === "npm install") {
        installPackage(project, unpacked);
        return;
      }
      if (line === "npm test") return void (await succeed(["--test"]));
      if (program === "node") {
        const code = saved.get(args[0]!)!;
        const prints = [...code.matchAll(/\/\/ prints: (.+)$/gm)].map(([, text]) => text);
        expect((await succeed(args)).trimEnd().split("\n"), line).toEqual(prints);
        return;
      }
      if (program === "pkill") {
        const worker = workers.at(-1)!;
        await expect.poll(() => worker.output, { timeout: 60_000 }).toContain("kill me now");
        const exited = once(worker.child, "exit");
        worker.child.kill("SIGKILL");
        await exited;
        return;
      }
      expect([program, args[0]], line).toEqual(["npx", "reprise"]);
      if (args[1] === "worker") await startWorker(args.slice(1));
      else await succeed([cli, ...args.slice(1)], args[1] === "init" ? folder : project);
    };

    for (const part of partsOf(readFileSync(join(ROOT, "docs/tutorial.md"), "utf8"))) {
      if (part.kind === "command") await follow(part.line);
      else {
        saved.set(part.name, part.code);
        mkdirSync(project, { recursive: true });
        writeFileSync(join(project, part.name), part.code);
      }
    }

    expect(workers).toHaveLength(2);
    expect(workers[0]!.output).toContain("printing the label");
    expect(workers[1]!.output).not.toContain("printing the label");
    expect(workers[1]!.output).toContain("loading the truck");
    const exited = once(workers[1]!.child, "exit");
    workers[1]!.child.kill("SIGINT");
    expect(await exited).toEqual([130, null]);
  },
);
