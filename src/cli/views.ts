// reprise views: prints the statements of the views for reports. It opens no store.

import { viewStatements } from "../stores/maintenance/index.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { print, printJson } from "./output.ts";

export async function views({ store, json }: GlobalOptions): Promise<number> {
  const statements = viewStatements(store);
  if (json) await printJson({ statements });
  else await print(statements.join("\n\n"));
  return EXIT.ok;
}
