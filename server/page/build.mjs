// Bundles the page and writes it as C: build/page/assets.c, which the server links in.
//
//   node server/page/build.mjs OUT     OUT is the folder with node_modules (build/page)
//
// Every file but the page itself has a hash of its contents in its name. The same sources and packages
// give the same bytes: no times, no paths, gzip heads without a time or a system.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2]);
const esbuild = createRequire(join(out, "package.json"))("esbuild");

const TYPES = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  html: "text/html; charset=utf-8",
  txt: "text/plain; charset=utf-8",
};

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 12);

function gzip(bytes) {
  const packed = gzipSync(bytes, { level: 9, memLevel: 9 });
  packed.fill(0, 4, 8); // time
  packed[9] = 255; // system: unknown
  return packed;
}

async function bundle() {
  const result = await esbuild.build({
    entryPoints: [join(here, "src/app.ts")],
    bundle: true,
    format: "esm",
    target: ["es2022"],
    minify: true,
    legalComments: "none",
    charset: "utf8",
    nodePaths: [join(out, "node_modules")],
    absWorkingDir: here,
    outdir: "/bundle",
    write: false,
    metafile: true,
    logLevel: "warning",
  });
  const files = result.outputFiles.map((file) => ({ stem: "app", ext: file.path.split(".").pop(), bytes: Buffer.from(file.contents) }));
  return [...files, licences(Object.keys(result.metafile.inputs))];
}

// What the licences of the bundled packages ask for: their texts go along, each once.
function licences(inputs) {
  const packages = new Set(inputs.map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  const users = new Map();
  for (const name of [...packages].sort()) {
    const folder = join(out, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : license;
    users.set(text, [...(users.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  const parts = [...users].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`);
  return { stem: "licences", ext: "txt", bytes: Buffer.from(`This page holds code of these packages.\n\n\n${parts.join("\n\n")}`) };
}

function named({ stem, ext, bytes }) {
  return { name: `${stem}-${hash(bytes)}.${ext}`, ext, bytes };
}

function page(files) {
  let text = readFileSync(join(here, "index.html"), "utf8");
  for (const ext of ["js", "css", "svg", "txt"]) text = text.replaceAll(`{${ext}}`, `assets/${files.find((f) => f.ext === ext).name}`);
  return { name: "", ext: "html", bytes: Buffer.from(text.replace(/\n\s*/g, "\n")) };
}

function asC(files) {
  const arrays = [], rows = [];
  files.forEach((file, i) => {
    const packed = gzip(file.bytes);
    const lines = [];
    for (let at = 0; at < packed.length; at += 40) lines.push("    " + [...packed.subarray(at, at + 40)].join(", ") + ",");
    arrays.push(`static const uint8_t file_${i}[] = {\n${lines.join("\n")}\n};`);
    rows.push(`    {"${file.name}", "${TYPES[file.ext]}", "W/\\"${hash(file.bytes)}\\"", file_${i}, sizeof file_${i}, ${file.bytes.length}},`);
  });
  return `/* Made by server/page/build.mjs. */
#include "server/page_assets.h"

${arrays.join("\n\n")}

const struct page_asset page_assets[] = {
${rows.join("\n")}
};

const size_t page_assets_n = ${files.length};
`;
}

mkdirSync(out, { recursive: true });
const files = [...(await bundle()), { stem: "varve", ext: "svg", bytes: readFileSync(join(here, "src/favicon.svg")) }].map(named);
files.unshift(page(files));
writeFileSync(join(out, "assets.c"), asC(files));
const total = files.reduce((sum, file) => sum + gzip(file.bytes).length, 0);
console.log(`        ${files.length} files, ${(total / 1024).toFixed(1)} KiB compressed`);
