// reprise/mysql: the door of MySQL and MariaDB.

export { mysql } from "./source.ts";
export type { MysqlHandle, MysqlResult } from "./user-handle.ts";
