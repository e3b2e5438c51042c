// Palette: in work. Finds a run by its id.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/controls.tsx";
import { Dialog } from "../components/dialog.tsx";
import type { PaletteProps } from "../palette-slot.tsx";
import { go, href, runPath } from "../router.ts";

export default function Palette({ onClose }: PaletteProps): JSX.Element {
  const [id, setId] = useState("");
  const open = (): void => {
    if (id === "") return;
    onClose();
    go(href(runPath(id)));
  };
  return (
    <Dialog
      title="Search"
      onClose={onClose}
      onSubmit={open}
      footer={
        <Button kind="primary" type="submit">
          Open
        </Button>
      }
    >
      <label class="field">
        <span class="eyebrow">Id of a run</span>
        <input autoFocus value={id} onInput={(event) => setId(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}
