// Maintenance: what the command line does with a database besides opening it.

export { backUpFile } from "../sqlite/back-up.ts";
export { readSchema } from "../sqlite/migrate.ts";
export { FileRestore, type PreparedRestore } from "../sqlite/restore-file.ts";
export { scratchBesideFile, scratchOnServer, type ScratchStore } from "./scratch-store.ts";
