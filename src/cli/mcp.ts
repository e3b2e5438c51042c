// reprise mcp: a server of the Model Context Protocol over standard input and output, one message per line, until the input ends.

import { createInterface } from "node:readline";
import { EXIT } from "./exit-codes.ts";
import { McpServer } from "./mcp/mcp-server.ts";
import { packageVersion } from "./version.ts";

export async function mcp(): Promise<number> {
  const server = new McpServer(packageVersion());
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === "") continue;
    const answer = server.answer(line);
    // Standard output holds messages only; nothing else may be printed there.
    if (answer !== undefined && !process.stdout.write(`${answer}\n`))
      await new Promise<void>((resolve) => process.stdout.once("drain", resolve));
  }
  return EXIT.ok;
}
