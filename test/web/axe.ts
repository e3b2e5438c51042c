// axe on a page: WCAG 2.2 AA and best practices, in both themes and at both widths.

import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[];
}

/** What axe finds, as text. */
async function findings(page: Page): Promise<readonly string[]> {
  // The devtools evaluate it, so that the Content-Security-Policy of the page stays in force.
  await page.evaluate(`if (typeof axe === "undefined") { ${axe.source} }`);
  const violations = await page.evaluate<readonly Finding[]>(
    `axe.run(document, { runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) => violations.map(({ id, help, nodes }) =>
      ({ id, help, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) })))`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary ?? ""}`),
  );
}

/** Fails on any finding. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await findings(page), `${colorScheme}, ${width} px`).toEqual([]);
      const overflow = await page.evaluate<number>(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect(overflow, `scrolls sideways at ${width} px`).toBeLessThanOrEqual(0);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}
