// Maintenance: what the command line does with a database besides opening it.

export { backUpFile } from "../sqlite/back-up.ts";
export { Mirror, readMirrorInfo, type PutOutcome } from "../sqlite/mirror.ts";
export type { MirrorInfo } from "../sqlite/mirror-info.ts";
export { copyOf, type CopiedPage, type CopiedRun, type RunName } from "../rules/copied-run.ts";
export { readSchema } from "../sqlite/migrate.ts";
export { viewStatements } from "./view-statements.ts";
export { FileRestore, type PreparedRestore } from "../sqlite/restore-file.ts";
export { scratchBesideFile, scratchOnServer, type ScratchStore } from "./scratch-store.ts";
