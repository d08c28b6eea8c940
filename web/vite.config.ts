import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Into the package: the wheel carries the page, and nobody needs Node to install it.
export default defineConfig({
  plugins: [react()],
  base: "./",
  build: {
    outDir: "../packages/osler-serve/src/osler_serve/static/dist",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy allows no data: addresses
    modulePreload: { polyfill: false },
  },
});
