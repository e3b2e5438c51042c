// Schemathesis: a stranger's tester reads the OpenAPI document of a listening server and sends requests that it allows and that it forbids.
// No answer may be an error of the server, and every answer must be one that the document names.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenHash } from "reprise/server";
import { openExampleShop } from "../../server/example-shop.ts";
import { runSchemathesis, SCHEMATHESIS, whyNoSchemathesis, type Tested } from "../../servers/schemathesis.ts";
import type { Rig, Tally, World } from "../rig.ts";

/** Operations that it does not send, and why. */
const EXCLUDED: Readonly<Record<string, string>> = {
  followEvents: "an event stream that does not end",
  readStream: "an event stream that lasts as long as its run",
};

/** Checks that do not fit, and why. */
const WITHOUT_CHECKS: Readonly<Record<string, string>> = {
  positive_data_acceptance:
    "a valid request is refused if its run, port or step does not exist, which no schema can say",
};

/** `/v1/runs/bulk` is also the address of a run with the id `bulk`, which GET reads: Allow names GET besides, and the document does not. */
const BULK = "bulkRuns";

const EXAMPLES = 30;
/** More than the longest `wait` that a request may ask for, 60 s. */
const TIMEOUT_SECONDS = 90;
/** As long as a real one. */
const TOKEN = `rp_00000000_${"t".repeat(43)}`;

export const schemathesis: Rig = {
  name: "schemathesis",
  title: "schemathesis sends requests made from the OpenAPI document, valid and invalid ones",
  shows: "the HTTP API keeps its own description",
  // The API knows no store: one is enough.
  stores: ["sqlite"],
  tested: [],
  rounds: 1,
  obstacle: whyNoSchemathesis,
  async run(world) {
    world.tally.note("with", `schemathesis ${SCHEMATHESIS}`);
    world.tally.note("left out", Object.keys(EXCLUDED).join(" and "));
    while (world.more()) await oneRound(world);
  },
};

async function oneRound({ tally, chance }: World): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-schemathesis-"));
  const failures: string[] = [];
  const logger = {
    info: () => undefined,
    warn: () => undefined,
    error: (text: string) => void failures.push(text),
  };
  const shop = await openExampleShop(
    {
      logger,
      limits: { requestsPerSecond: 1_000_000 },
      auth: { tokens: [{ name: "tester", role: "admin", hash: tokenHash(TOKEN) }] },
    },
    `sqlite:${join(folder, "shop.db")}`,
  );
  const { url } = await shop.server.listen({ port: 0 });
  const common = [
    `${url}/openapi.json`,
    ...["--max-examples", String(EXAMPLES), "--seed", String(chance.below(1_000_000)), "--checks", "all"],
    ...["--header", `Authorization: Bearer ${TOKEN}`, "--header", "x-reprise: 1"],
    ...[
      "--request-timeout",
      String(TIMEOUT_SECONDS),
      "--max-response-time",
      String(TIMEOUT_SECONDS),
      "--suppress-health-check",
      "all",
      "--continue-on-failure",
    ],
  ];
  const without = Object.keys(WITHOUT_CHECKS).join(",");
  const excluded = [BULK, ...Object.keys(EXCLUDED)].flatMap((id) => ["--exclude-operation-id", id]);
  for (const more of [
    ["--exclude-checks", without, ...excluded],
    ["--exclude-checks", `${without},allow_header_conformance`, "--include-operation-id", BULK],
  ])
    judge(tally, await runSchemathesis([...common, ...more], folder));
  for (const failure of failures) tally.broken(failure);
  await shop[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
}

function judge(tally: Tally, { status, text }: Tested): void {
  const [, requests = "0"] = /([\d,]+) generated/.exec(text) ?? [];
  tally.add("requests", Number(requests.replaceAll(",", "")));
  if (status !== 0) tally.broken(text);
}
