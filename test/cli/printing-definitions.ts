// Definitions that print, as user code does.

import { workflow } from "reprise";

console.log("loaded");

export const printing = workflow("printing", async (ctx) =>
  ctx.run("print", () => {
    console.log('{"jsonrpc":"2.0","id":1,"result":{}}');
    process.stdout.write("not a message\n");
    return "printed";
  }),
);
