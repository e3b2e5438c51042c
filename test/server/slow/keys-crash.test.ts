// Idempotency keys and SIGKILL: the server dies between the effect of a request and the record of its answer.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createEngine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { expect, test } from "vitest";
import { createFolder } from "../../engine/world.ts";
import { HOLD_MS, inbox } from "./keys-definitions.ts";

const PROCESS = fileURLToPath(new URL("keys-process.ts", import.meta.url));

async function message(child: ChildProcess): Promise<string> {
  return ((await once(child, "message")) as [string])[0];
}

interface Sent {
  readonly path: string;
  readonly key: string;
  readonly body: object;
}

function requestTo(address: string, { path, key, body }: Sent): Request {
  return new Request(`${address}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-reprise": "1", "idempotency-key": key },
    body: JSON.stringify(body),
  });
}

/** Sends a request to a process that is killed when the request has had its effect: the client gets no answer. */
async function dieBehindEffect(store: string, sent: Sent): Promise<void> {
  const child = fork(PROCESS, [store], { execArgv: ["--conditions=reprise-source"] });
  try {
    const url = await message(child);
    const acted = message(child);
    const answer = fetch(requestTo(url, sent)).then(
      ({ status }) => status,
      () => "no answer",
    );
    expect(await acted).toBe("acted");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await answer).toBe("no answer");
  } finally {
    child.kill("SIGKILL");
  }
}

interface Answered {
  readonly status: number;
  readonly replayed: string | null;
  readonly text: string;
}

/** Repeats a request as a client does: while its key is held it gets 409, with the time to wait. */
async function repeat(server: Server, sent: Sent): Promise<Answered & { readonly held: number }> {
  let held = 0;
  const once = async (): Promise<Answered> => {
    const response = await server.fetch(requestTo("http://127.0.0.1:7420", sent));
    if (response.status === 409) {
      held += 1;
      expect(response.headers.get("retry-after")).toBe("1");
    }
    const { status, headers } = response;
    return { status, replayed: headers.get("idempotent-replayed"), text: await response.text() };
  };
  let last: Answered | undefined;
  await expect.poll(async () => (last = await once()).status).not.toBe(409);
  return { ...last!, held };
}

test("a start and a signal whose server was killed before the record act once when they are repeated, with one answer", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("keys.db")}`;
  await using engine = await createEngine({ store, definitions: [inbox], logger: false });
  await using server = createServer(engine, { limits: { requestMs: HOLD_MS } });

  const start = { path: "/v1/definitions/inbox/runs", key: "inbox-1", body: {} };
  await dieBehindEffect(store, start);
  expect(await engine.find("inbox-1")).toBeDefined();
  const first = await repeat(server, start);
  expect([first.status, first.replayed, JSON.parse(first.text)]).toMatchObject([201, null, { id: "inbox-1" }]);
  // The dead process held the key: the repetition did not act beside it.
  expect(first.held).toBeGreaterThan(0);
  expect(await repeat(server, start)).toEqual({ ...first, replayed: "true", held: 0 });
  expect(await Array.fromAsync(engine.list(), ({ id }) => id)).toEqual(["inbox-1"]);

  const note = { path: "/v1/runs/inbox-1/signals/note", key: "note-1", body: { value: "a" } };
  await dieBehindEffect(store, note);
  const second = await repeat(server, note);
  expect([second.status, second.replayed]).toEqual([200, null]);
  expect(await repeat(server, note)).toEqual({ ...second, replayed: "true", held: 0 });
  await engine.get(inbox, "inbox-1").signal("note", "end");
  expect(await engine.get(inbox, "inbox-1").result()).toEqual(["a", "end"]);
});
