// What the command line does with a database besides opening it.

export { backUpFile } from "../sqlite/back-up.ts";
export { readSchema } from "../sqlite/migrate.ts";
export { Restore, type Prepared } from "../sqlite/restore.ts";
export { scratchBesideFile, scratchOnServer, type Scratch } from "./scratch.ts";
