// Restate: its server in another process with its own storage, which syncs its log; handlers in this process, over HTTP/2.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http2";
import { createRequire } from "node:module";
import { createServer as createSocket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";

const ended = new Map();
/** Requests under way while jobs are enqueued: more of them only wait, and some are refused. */
const SENDERS = 200;

const steps = restate.service({
  name: "steps",
  handlers: {
    run: async (ctx, count) => {
      for (let index = 0; index < count; index += 1) await ctx.run("step", () => ({ index, text: "a small answer" }));
      return count;
    },
    job: async (_ctx, index) => {
      // A request that was repeated starts a second job.
      ended.get(index)?.();
      ended.delete(index);
      return index;
    },
  },
});

async function freePort() {
  const socket = createSocket().listen(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  await once(socket, "close");
  return port;
}

export async function open({ folder }) {
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
  const require = createRequire(import.meta.url);
  const binary = require.resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`);
  const server = spawn(binary, ["--base-dir", folder, "--no-logo", "--bind-port", String(node)], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_PORT: String(ingress),
      RESTATE_ADMIN__BIND_PORT: String(admin),
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_LOG_FILTER: "error",
    },
  });
  process.once("exit", () => server.kill("SIGKILL"));
  const http = createServer(restate.createEndpointHandler({ services: [steps], logger: () => {} })).listen(
    0,
    "127.0.0.1",
  );
  await once(http, "listening");
  const uri = `http://127.0.0.1:${http.address().port}`;
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ uri }),
      });
      if (answer.ok) break;
      if (performance.now() > deadline) throw new Error(await answer.text());
    } catch (error) {
      if (performance.now() > deadline || server.exitCode !== null)
        throw new Error("restate-server did not accept the deployment", { cause: error });
    }
    await wait(100);
  }
  const client = clients.connect({ url: `http://127.0.0.1:${ingress}` });
  const [called, sent] = [client.serviceClient(steps), client.serviceSendClient(steps)];
  return {
    pids: [server.pid],
    run: (count) => called.run(count),
    enqueue: async (indexes, onEnd) => {
      const waiting = indexes.values();
      const send = async () => {
        for (const index of waiting) {
          ended.set(index, onEnd);
          // The server closes some connections while it is busy.
          await sent.job(index).catch(() => sent.job(index));
        }
      };
      await Promise.all(Array.from({ length: SENDERS }, send));
    },
    async close() {
      server.kill("SIGKILL");
      await once(server, "exit");
      http.close();
    },
  };
}
