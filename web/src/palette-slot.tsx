// Palette slot: opens the palette of commands; its code is loaded at the first use.

import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { showProblem } from "./components/controls.tsx";

/** What the palette gets. */
export interface PaletteProps {
  readonly onClose: () => void;
}

const isOpen = signal(false);
const loaded = signal<ComponentType<PaletteProps> | undefined>(undefined);

export function openPalette(): void {
  isOpen.value = true;
  if (loaded.peek() === undefined) {
    import("./palette/palette.tsx").then((module) => (loaded.value = module.default), showProblem);
  }
}

export function PaletteSlot(): JSX.Element | null {
  const Palette = loaded.value;
  if (!isOpen.value || Palette === undefined) return null;
  return <Palette onClose={() => (isOpen.value = false)} />;
}
