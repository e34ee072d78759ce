// Builds target/site, the files that browsers load, from the WebAssembly that .make/build compiled
// and the styles in style/. It divides the WebAssembly into parts, adds the scripts that load them,
// shrinks them, bundles scripts and styles, adds a content hash to each file name, and writes
// compressed copies.
// Files that are up to date aren't rebuilt. .make/build runs this script.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync,
} from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import binaryen from 'binaryen';
import { build } from 'esbuild';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const tool = 'target/debug/frontend-bindings';
const compiled = 'target/front/wasm32-unknown-unknown/wasm-release/frontend.wasm';
const completed = 'target/front/site';
const site = 'target/site';
const pkg = join(site, 'pkg');
/** The first versions with light-dark() and nesting. esbuild rewrites rules for older ones. */
const browsers = ['chrome123', 'edge123', 'firefox120', 'safari17.5', 'ios17.5'];

/**
 * Leptos functions for kinds of hydration that the portal doesn't use. The portal hydrates at once,
 * from the page that the server rendered. The compiler keeps these functions because tables contain
 * their addresses. They are a tenth of the program.
 */
const unused = /13hydrate_async28_\$u7b\$\$u7b\$closure\$u7d\$\$u7d\$17h[0-9a-f]{16}E$/;

completeWebAssembly();
const files = await bundle();
Object.values(files).forEach(compress);
publish(files);

/** Divides the WebAssembly, adds the scripts that load it, and shrinks it. This takes longest. */
function completeWebAssembly() {
  const inputs = [compiled, tool, 'frontend/package-lock.json', 'frontend/site.mjs'];
  const hash = createHash('sha256');
  for (const input of inputs) hash.update(readFileSync(input));
  const wanted = hash.digest('hex');
  const stamp = join(completed, 'inputs');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;

  rmSync(completed, { recursive: true, force: true });
  mkdirSync(completed, { recursive: true });
  execFileSync(tool, [compiled, completed], { stdio: 'inherit' });
  renameSync(join(completed, 'heliograph_bg.wasm'), join(completed, 'heliograph.wasm'));
  let found = 0;
  for (const name of ['heliograph.wasm', ...parts().flatMap(([, files]) => files)]) {
    const path = join(completed, name);
    const smaller = shrink(readFileSync(path));
    writeFileSync(path, smaller.content);
    found += smaller.found;
  }
  if (found === 0) throw new Error(`no function has a name like ${unused}: they were renamed`);
  writeFileSync(stamp, wanted);
}

/** Returns the names of the parts, each with the names of its files. */
function parts() {
  const lines = readFileSync(join(completed, 'parts.txt'), 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [part, files] = line.split(': ');
    return [part, files.split(' ').map((name) => `${name}.wasm`)];
  });
}

/** Shrinks WebAssembly. The program traps if it calls a removed function. */
function shrink(raw) {
  const module = binaryen.readBinary(raw);
  // The compiler uses these features. All browsers in the list above support them.
  const has = binaryen.Features;
  const used = [
    has.BulkMemory, has.BulkMemoryOpt, has.MutableGlobals, has.NontrappingFPToInt, has.SignExt,
  ];
  module.setFeatures(used.reduce((all, one) => all | one));
  let found = 0;
  for (let index = 0; index < module.getNumFunctions(); index += 1) {
    const one = binaryen.Function(module.getFunctionByIndex(index));
    if (!unused.test(one.name)) continue;
    one.body = module.unreachable();
    found += 1;
  }
  binaryen.setOptimizeLevel(2);
  binaryen.setShrinkLevel(2);
  module.runPasses(['flatten', 'rereloop']);
  module.optimize();
  module.optimize();
  const content = module.emitBinary();
  module.dispose();
  return { content, found };
}

/** Writes WebAssembly, scripts and styles. Returns the name of each source's file in `pkg`. */
async function bundle() {
  const program = ['heliograph.wasm', ...new Set(parts().flatMap(([, files]) => files))];
  const files = await write(program.map((name) => join(completed, name)));
  const loader = {
    name: 'parts',
    setup: ({ onLoad }) => onLoad({ filter: /\/parts\.js$/ }, ({ path }) => ({
      contents: completeLoader(readFileSync(path, 'utf8'), files),
    })),
  };
  const start = { in: join(completed, 'heliograph.js'), out: 'heliograph' };
  const style = { in: 'style/main.css', out: 'heliograph' };
  return { ...files, ...await write([start, style], [loader]) };
}

/**
 * Completes the script that loads the parts. It gets the final names of their files, and
 * frontend/compile.mjs repeats requests that fail.
 */
function completeLoader(script, files) {
  const changes = [
    [/(?<="\.\/)\w+\.wasm/g, (name) => {
      if (!files[name]) throw new Error(`parts.js names ${name}, which isn't a part's file`);
      return files[name];
    }],
    [/\bfetch\(/g, 'compile('],
    [/\bWebAssembly\.instantiateStreaming\(src,/g, 'WebAssembly.instantiate(await src,'],
  ];
  const source = JSON.stringify(resolve('frontend/compile.mjs'));
  return changes.reduce((text, [pattern, replacement]) => {
    if (!pattern.test(text)) throw new Error(`parts.js has no ${pattern}`);
    return text.replace(pattern, replacement);
  }, `import { compile } from ${source};\n${script}`);
}

async function write(entryPoints, plugins = []) {
  const { metafile } = await build({
    entryPoints,
    plugins,
    outdir: pkg,
    entryNames: '[name].[hash]',
    loader: { '.wasm': 'copy' },
    format: 'esm',
    target: browsers,
    bundle: true,
    minify: true,
    metafile: true,
    logLevel: 'warning',
    // wasm-bindgen names the script of the parts once for each part.
    logOverride: { 'duplicate-object-key': 'silent' },
  });
  const outputs = Object.entries(metafile.outputs);
  return Object.fromEntries(outputs.map(([path, { entryPoint, inputs }]) => {
    return [basename(entryPoint ?? Object.keys(inputs)[0]), basename(path)];
  }));
}

/** Writes a brotli and a gzip copy next to a file. The server sends them as they are. */
function compress(name) {
  const path = join(pkg, name);
  if (existsSync(`${path}.br`) && existsSync(`${path}.gz`)) return;
  const content = readFileSync(path);
  const parameters = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.gz`, gzipSync(content, { level: constants.Z_BEST_COMPRESSION }));
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params: parameters }));
}

/**
 * Writes the list of names that the server reads, and removes stale files. Leptos reads the hashes
 * of the program, its script and the styles. The portal reads the names of the parts' files.
 */
function publish(files) {
  const own = ['heliograph.js', 'heliograph.wasm', 'main.css'].map((source) => {
    const [, hash] = files[source].split('.');
    return `${extname(source).slice(1)}: ${hash}\n`;
  });
  const lists = parts().map(([part, sources]) => {
    return `${part}: ${sources.map((source) => files[source]).join(' ')}\n`;
  });
  const list = join(site, 'hash.txt');
  // Rename in one step, because a running server reads this file for each page.
  writeFileSync(`${list}.new`, [...own, ...lists].join(''));
  renameSync(`${list}.new`, list);
  const names = Object.values(files);
  const current = new Set(names.flatMap((name) => [name, `${name}.br`, `${name}.gz`]));
  for (const name of readdirSync(pkg)) {
    if (!current.has(name)) rmSync(join(pkg, name), { recursive: true });
  }
}
