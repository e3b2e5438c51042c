// Packages of S3 and NATS are optional, and loaded when they are used.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ENTRANCE = fileURLToPath(new URL("../../../src/federation/index.ts", import.meta.url));
const BASE = fileURLToPath(new URL("../../../src/base/index.ts", import.meta.url));

/** What opening a carrier says in a process in which the packages are not installed, and which of them it asked for. */
function openWithoutPackages(url: string): { readonly said: string; readonly asked: readonly string[] } {
  const program = `
    import { registerHooks } from "node:module";
    const asked = [];
    registerHooks({
      resolve(specifier, context, next) {
        if (!/^(?:aws4fetch|@nats-io)/.test(specifier)) return next(specifier, context);
        asked.push(specifier);
        throw Object.assign(new Error("Cannot find package " + specifier), { code: "ERR_MODULE_NOT_FOUND" });
      },
    });
    const { openCarrier } = await import(${JSON.stringify(ENTRANCE)});
    const { systemClock: clock, systemTimers: timers, systemRandom: random } = await import(${JSON.stringify(BASE)});
    const env = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
    const said = await openCarrier(${JSON.stringify(url)}, { clock, timers, random, env }).then(
      () => "opened",
      (error) => error.code + " " + error.message,
    );
    process.stdout.write(JSON.stringify({ said, asked }));
  `;
  const args = ["--conditions=reprise-source", "--input-type=module", "--eval", program];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }));
}

test("a missing package is an error that says what to install", () => {
  expect(openWithoutPackages("s3://bucket/x").said).toMatch(/^DRIVER_MISSING .*npm install aws4fetch/);
  expect(openWithoutPackages("nats://127.0.0.1:4222/x").said).toMatch(
    /^DRIVER_MISSING .*npm install @nats-io\/transport-node @nats-io\/jetstream @nats-io\/kv @nats-io\/obj/,
  );
});

test("other carriers ask for no package", () => {
  expect(openWithoutPackages("http://127.0.0.1/x")).toEqual({ said: "opened", asked: [] });
});
