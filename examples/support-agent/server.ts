// One process with everything: a worker, the HTTP API, the dashboard, and the page of the customer.

import { readFileSync } from "node:fs";
import { createEngine } from "reprise";
import { createServer } from "reprise/server";
import { definitions } from "./agent.ts";

const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["page.html", "text/html; charset=utf-8"],
  "/page.css": ["page.css", "text/css"],
  "/page.js": ["page.js", "text/javascript"],
};

function filePage(path: string): Response {
  const [file, type] = FILES[path]!;
  const policy = "default-src 'self'; img-src data:; frame-ancestors 'none'";
  const headers = { "content-type": type, "content-security-policy": policy, "cache-control": "no-cache" };
  return new Response(readFileSync(new URL(file, import.meta.url)), { headers });
}

await using engine = await createEngine({
  store: process.env["STORE"] ?? "sqlite:support.db",
  definitions,
  worker: { lease: "1 s" }, // short, so that another process takes over quickly
});
await using server = createServer(engine, {
  basePath: "/reprise",
  routes: Object.keys(FILES).map((path) => ({
    method: "GET",
    path: new RegExp(`^${RegExp.escape(path)}$`),
    admit: () => ({ name: "customer" }),
    handle: () => filePage(path),
  })),
});
const listener = await server.listen({ port: Number(process.env["PORT"] ?? 7420) });
const { url } = listener;
console.log(`Ask at ${url}/ and look inside at ${url}/reprise/`);
// For a parent process, if there is one: the address; and this process ends with it.
process.send?.(url);
process.channel?.unref();
await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve).once("disconnect", resolve));
await listener.close();
