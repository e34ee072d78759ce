// Builds target/site, the files that browsers load, from the WebAssembly that .make/build put into
// target/front and the styles in style/. It adds the loader script to the WebAssembly, shrinks it,
// bundles scripts and styles, adds a content hash to each file name, and writes compressed copies.
// Files that are up to date aren't rebuilt. .make/build runs this script.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import binaryen from 'binaryen';
import { build } from 'esbuild';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** The customers' build, and the build with all pages, which staff load. */
const programs = ['heliograph', 'support'];
const tool = 'target/debug/frontend-bindings';
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
const unused = /::hydrate_async::\{\{closure\}\}::h[0-9a-f]+$/;

programs.forEach(completeWebAssembly);
const names = await bundle();
names.forEach(compress);
publish(names);

/** Adds the script that loads the WebAssembly, and shrinks it. This step takes the longest. */
function completeWebAssembly(program) {
  const compiled = `target/front/${program}.wasm`;
  const folder = join(completed, program);
  const inputs = [compiled, tool, 'frontend/package-lock.json', 'frontend/site.mjs'];
  const hash = createHash('sha256');
  for (const input of inputs) hash.update(readFileSync(input));
  const wanted = hash.digest('hex');
  const stamp = join(folder, 'inputs');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;

  rmSync(folder, { recursive: true, force: true });
  execFileSync(tool, [compiled, folder], { stdio: 'inherit' });
  const raw = readFileSync(join(folder, 'heliograph_bg.wasm'));
  writeFileSync(join(folder, 'heliograph.wasm'), shrink(raw));
  writeFileSync(stamp, wanted);
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
  if (found === 0) throw new Error(`no function has a name like ${unused}: they were renamed`);
  binaryen.setOptimizeLevel(2);
  binaryen.setShrinkLevel(2);
  module.runPasses(['flatten', 'rereloop']);
  module.optimize();
  module.optimize();
  const smaller = module.emitBinary();
  module.dispose();
  return smaller;
}

/** Writes scripts, WebAssembly and styles. Returns their names in the folder `pkg`. */
async function bundle() {
  const code = programs.flatMap((program) => [
    { in: join(completed, program, 'heliograph.js'), out: program },
    { in: join(completed, program, 'heliograph.wasm'), out: program },
  ]);
  const { metafile } = await build({
    entryPoints: [...code, { in: 'style/main.css', out: 'heliograph' }],
    outdir: pkg,
    entryNames: '[name].[hash]',
    loader: { '.wasm': 'copy' },
    format: 'esm',
    target: browsers,
    bundle: true,
    minify: true,
    metafile: true,
    logLevel: 'warning',
  });
  return Object.keys(metafile.outputs).map((path) => basename(path));
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

/** Writes the list of names that Leptos reads on the server, and removes stale files. */
function publish(names) {
  for (const program of programs) {
    const own = names.filter((name) => name.startsWith(`${program}.`));
    const lines = own.map((name) => {
      const [, hash] = name.split('.');
      return `${extname(name).slice(1)}: ${hash}\n`;
    });
    const list = join(site, program === 'heliograph' ? 'hash.txt' : `${program}-hash.txt`);
    // Rename in one step, because a running server reads this file for each page.
    writeFileSync(`${list}.new`, lines.join(''));
    renameSync(`${list}.new`, list);
  }
  const current = new Set(names.flatMap((name) => [name, `${name}.br`, `${name}.gz`]));
  for (const name of readdirSync(pkg)) {
    if (!current.has(name)) rmSync(join(pkg, name), { recursive: true });
  }
}
