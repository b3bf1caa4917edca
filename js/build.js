// Bundle js/src into one ES module and one style sheet: node build.js [folder]
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const outdir = process.argv[2] ?? here("../src/mercat/viewer/static");

await build({
  entryPoints: { viewer: here("src/main.js"), style: here("src/style.css") },
  outdir,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
});
