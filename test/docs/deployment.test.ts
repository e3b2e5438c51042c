// The files in deploy/ agree with the program: commands, options, paths and ports exist, and one host name is used throughout.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.ts";
import { monitorOperations } from "../../src/contract/index.ts";
import { filesUnder } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const files = new Map(
  filesUnder(ROOT, "deploy", "")
    .filter((path) => /\.(?:yaml|service|conf)$|file$/.test(path))
    .map((path) => [path, readFileSync(join(ROOT, path), "utf8")]),
);

function textOf(path: string): string {
  const text = files.get(join("deploy", path));
  if (text === undefined) throw new Error(`deploy/${path} is missing`);
  return text;
}

const server = textOf("kubernetes/base/server.yaml");
const worker = textOf("kubernetes/base/worker.yaml");
const docker = textOf("docker/Dockerfile");

/** The words of every call of the program. */
const calls: readonly (readonly [place: string, words: readonly string[]])[] = [
  ["server.yaml", argumentsOf(server, "args:\n")],
  ["worker.yaml", JSON.parse(/args: (\[.*\])/.exec(worker)?.[1] ?? "[]") as string[]],
  ["Dockerfile", JSON.parse(/^CMD (\[.*\])/m.exec(docker)?.[1] ?? "[]") as string[]],
  ...["reprise-worker", "reprise-server"].map((name): readonly [string, readonly string[]] => [
    name,
    /^ExecStart=\S+\/reprise (.*)$/m.exec(textOf(`systemd/${name}.service`))?.[1]?.match(/"[^"]*"|\S+/g) ?? [],
  ]),
];

/** A block list of YAML, without comments. */
function argumentsOf(text: string, key: string): readonly string[] {
  const [, rest = ""] = text.split(key);
  const lines = rest.split("\n").filter((line) => !line.trim().startsWith("#"));
  const end = lines.findIndex((line) => !line.trim().startsWith("- "));
  return lines.slice(0, end).map((line) => line.trim().slice(2).replaceAll('"', ""));
}

describe.each(calls)("the command of %s", (_place, words) => {
  test("exists, with its options", () => {
    const command = createProgram().commands.find((one: Command) => one.name() === words[0]);
    expect(command, words.join(" ")).toBeDefined();
    const known = [...(command?.options ?? []), ...createProgram().options].map(({ long }) => long);
    const given = words.filter((word) => word.startsWith("--"));
    expect(given.length).toBeGreaterThan(0);
    for (const option of given) expect(known).toContain(option);
  });
});

test("probes, autoscaling and health checks use paths of the API", () => {
  const { getHealth, getReadiness, getScale } = monitorOperations;
  const paths = Array.from(server.matchAll(/^ +path: (\/\w+)$/gm), ([, path]) => path);
  expect(paths).toEqual([getHealth.path, getReadiness.path]);
  expect(docker).toContain(`:7420${getHealth.path}'`);
  const scaled = textOf("kubernetes/keda/scaled-object.yaml");
  const { pathname, searchParams } = new URL(/url: (\S+)/.exec(scaled)?.[1] ?? "");
  expect(pathname).toBe(getScale.path);
  const { properties } = getScale.query as unknown as { properties: object };
  expect(Object.keys(properties)).toEqual(expect.arrayContaining([...searchParams.keys()]));
  const answer = getScale.answer as unknown as { properties: object };
  expect(Object.keys(answer.properties)).toContain(/valueLocation: (\w+)/.exec(scaled)?.[1]);
});

test("every file names the same host and port", () => {
  for (const [path, text] of files) {
    const hosts = new Set(
      Array.from(text.matchAll(/\bruns\.[a-z.]+\b/g), ([host]) => host.replace(/\.(?:pem|key)$/, "")),
    );
    expect(
      [...hosts].filter((host) => host !== "runs.example.org"),
      path,
    ).toEqual([]);
    for (const [, port] of text.matchAll(/(?:127\.0\.0\.1|localhost):(\d+)/g)) expect(port, path).toBe("7420");
  }
  expect(textOf("kubernetes/base/kustomization.yaml")).toContain("REPRISE_ORIGIN=https://runs.example.org");
  expect(server).toContain("containerPort: 7420");
  expect(docker).toContain("EXPOSE 7420");
});

test("a worker has more time to stop than its running steps", () => {
  const grace = Number(/"--grace", "(\d+) s"/.exec(worker)?.[1]);
  expect(Number(/terminationGracePeriodSeconds: (\d+)/.exec(worker)?.[1])).toBeGreaterThan(grace);
  const unit = textOf("systemd/reprise-worker.service");
  expect(Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1])).toBeGreaterThan(Number(/--grace "(\d+) s"/.exec(unit)?.[1]));
});

test("containers run as another user than root, and streams pass the proxies unbuffered", () => {
  expect(docker).toMatch(/^USER node$/m);
  for (const text of [server, worker]) expect(text).toContain("runAsNonRoot: true");
  expect(textOf("proxy/nginx.conf")).toContain("proxy_buffering off;");
  expect(textOf("proxy/Caddyfile")).toContain("flush_interval -1");
  expect(textOf("kubernetes/base/ingress.yaml")).toContain('proxy-buffering: "off"');
});

test("every file that a kustomization names exists, and secrets are in no file", () => {
  for (const name of ["base", "keda"])
    for (const [, file = ""] of textOf(`kubernetes/${name}/kustomization.yaml`).matchAll(/^ {2}- (\S+\.yaml)$/gm))
      expect(files.has(`deploy/kubernetes/${name}/${file}`), file).toBe(true);
  for (const [path, text] of files) {
    expect(text, path).not.toMatch(/^kind: Secret$/m);
    expect(text, path).not.toMatch(/\t(?!request_body|reverse_proxy|max_size|#|flush_interval|\t|\})/);
  }
});
