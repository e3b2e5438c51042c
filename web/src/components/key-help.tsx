// Key help: all keys of the page, and the row of keys under it.

import type { JSX } from "preact";
import { boundKeys, keyCaps, keyHelpOpen, setSingleKeys, singleKeys } from "../keys.ts";
import { Dialog } from "./dialog.tsx";

export function KeyHelp(): JSX.Element | null {
  if (!keyHelpOpen.value) return null;
  return (
    <Dialog title="Keys" wide onClose={() => (keyHelpOpen.value = false)}>
      <div class="key-groups">
        {boundKeys()
          .filter(({ keys }) => keys.length > 0)
          .map(({ title, keys }) => (
            <section key={title}>
              <h3>{title}</h3>
              <dl class="kv">
                {keys.map((key) => (
                  <>
                    <dt>
                      {keyCaps(key.keys).map((cap) => (
                        <kbd key={cap}>{cap}</kbd>
                      ))}
                    </dt>
                    <dd>{key.label}</dd>
                  </>
                ))}
              </dl>
            </section>
          ))}
      </div>
      <label class="row switch">
        <input
          type="checkbox"
          checked={singleKeys.value}
          onChange={(event) => setSingleKeys(event.currentTarget.checked)}
        />
        Single keys are on
      </label>
    </Dialog>
  );
}

/** The row under a page. */
export function KeyRow({ keys }: { readonly keys: readonly (readonly [string, string])[] }): JSX.Element {
  return (
    <footer class="foot" aria-label="Keyboard">
      {keys.map(([caps, label]) => (
        <span key={label}>
          {caps.split(" ").map((cap) => (
            <kbd key={cap}>{cap}</kbd>
          ))}{" "}
          {label}
        </span>
      ))}
    </footer>
  );
}
