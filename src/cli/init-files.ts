// Init files: the files that `reprise init` writes.

export function projectFiles(name: string, version: string): Readonly<Record<string, string>> {
  return {
    "package.json": `${JSON.stringify(manifest(name, version), undefined, 2)}\n`,
    "tsconfig.json": TSCONFIG,
    ".oxlintrc.json": LINT,
    "workflows.ts": WORKFLOWS,
    "workflows.test.ts": TEST,
    "README.md": readme(name),
    ".gitignore": "node_modules/\n.reprise/\n*.db\n*.db-wal\n*.db-shm\n",
  };
}

function manifest(name: string, version: string): object {
  return {
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    scripts: {
      dev: "reprise dev workflows.ts",
      start: "reprise worker workflows.ts",
      test: "node --test",
      check: "tsc && oxlint",
    },
    dependencies: { reprise: `^${version}` },
    devDependencies: { "@types/node": "^24.0.0", oxlint: "^1.89.0", typescript: "^5.9.0 || ^7.0.0" },
    engines: { node: ">=24.15" },
  };
}

const TSCONFIG = `{
  "compilerOptions": {
    "target": "esnext",
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "erasableSyntaxOnly": true,
    "allowImportingTsExtensions": true,
    "skipLibCheck": true
  }
}
`;

/** The rule finds calls in workflow code that a replay would answer differently, and a missing `await`. */
const LINT = `{
  "jsPlugins": ["reprise/lint"],
  "rules": { "reprise/no-nondeterminism": "error" }
}
`;

const WORKFLOWS = `// \`reprise dev\`, \`reprise worker\` and \`reprise run\` register everything that this file exports.

import { promise, task, workflow } from "reprise";

/** A task runs on any worker. A retry has the same key: pass it to the mail server, so that it can ignore duplicates. */
export const sendMail = task("send-mail", { retry: { maxAttempts: 5 } }, async (ctx, mail: { to: string; text: string }) => {
  ctx.log.info(\`to \${mail.to}: \${mail.text}\`);
  return { id: ctx.idempotencyKey };
});

/** A workflow is durable: kill the process at any moment, and the next worker continues from the last recorded step. */
export const welcome = workflow("welcome", { ports: { confirmed: promise<boolean>() } }, async (ctx, to: string) => {
  await ctx.task(sendMail, { to, text: "Please confirm your address." });
  const confirmed = await ctx.promise("confirmed", { timeout: "2 days" });
  if (confirmed !== true) return "gave up";
  await ctx.sleep("5 s");
  await ctx.task(sendMail, { to, text: "Welcome!" });
  return "welcomed";
});
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";
import { sendMail, welcome } from "./workflows.ts";

const mail = stub(sendMail, () => ({ id: "mail-1" }));

test("a user who confirms is welcomed", async () => {
  await using engine = await createTestEngine({ definitions: [welcome, sendMail], stubs: [mail] });
  const run = await engine.start(welcome, "ada@example.org");
  await run.resolve("confirmed", true);
  await engine.clock.advance("5 s");
  assert.equal(await run.result(), "welcomed");
});

test("the workflow gives up after two days without an answer", async () => {
  await using engine = await createTestEngine({ definitions: [welcome, sendMail], stubs: [mail] });
  const run = await engine.start(welcome, "ada@example.org");
  await engine.clock.advance("2 days");
  assert.equal(await run.result(), "gave up");
});

test("a crash at any commit does not change the result", async () => {
  const { output } = await crashEverywhere(welcome, "ada@example.org", {
    definitions: [sendMail],
    stubs: [mail],
    drive: (engine, id) => engine.get(welcome, id).resolve("confirmed", true),
  });
  assert.equal(output, "welcomed");
});
`;

function readme(name: string): string {
  return `# ${name}

\`\`\`sh
npm install
npm test         # runs the workflow with virtual time, and crashes it at every commit
npm run check    # checks types, and that workflow code is deterministic
npm run dev      # runs a worker that restarts on file changes
\`\`\`

In a second terminal, start a run, see what it waits for, and confirm the address:

\`\`\`sh
npx reprise run workflows.ts welcome '"ada@example.org"' --id ada --detach
npx reprise show ada
npx reprise resolve ada confirmed true
npx reprise show ada --watch
npx reprise verify ada workflows.ts
\`\`\`

All data is in \`reprise.db\`. Stop the worker at any moment and start it again: every run continues from its last recorded step.
`;
}
