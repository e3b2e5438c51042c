// The build of the dashboard: one entry, a chunk per page, everything relative to the base path of the server.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const folder = fileURLToPath(new URL(".", import.meta.url));

export default defineConfig({
  root: folder,
  // Relative: the server may have a base path, which is known only when it starts.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: fileURLToPath(new URL("../dist/web", import.meta.url)),
    emptyOutDir: true,
    target: "es2024",
    // The Content-Security-Policy refuses data addresses.
    assetsInlineLimit: 0,
    // One file of styles: 2 KB less than one for each page, and no page appears before its styles.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // One chunk for what two pages share: many small ones compress worse, and load later.
        codeSplitting: {
          groups: [
            { name: "shared", test: /web\/src\/components\/|node_modules\/(?:@?preact)\//, priority: 2 },
            { name: "shared", test: /web\/src\//, minShareCount: 2, priority: 1 },
            // Small pages that operators visit together: one chunk compresses better than four.
            { name: "operate", test: /web\/src\/pages\/(?:evals|peers|queues|schedules)\// },
          ],
        },
        // A chunk is named by its folder: every page is a file page.tsx.
        chunkFileNames: ({ facadeModuleId, name }) => {
          const [, folder, file] = /([^/]+)\/([^/]+)\.tsx?$/.exec(facadeModuleId ?? "") ?? [];
          return `assets/${folder === undefined ? name : file === "page" ? folder : `${folder}-${file}`}-[hash].js`;
        },
      },
    },
  },
  logLevel: "warn",
});
