import type { Problem } from "../../kernel/index.ts";
import type { Session } from "./session.ts";
export async function check(_session: Session, _onProgress?: (done: number, total: number) => void): Promise<readonly Problem[]> { return []; }
