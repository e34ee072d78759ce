// Makes target/site, the files that browsers load, from the WebAssembly that .make/build left in
// target/front and the styles in style/: completes and shrinks the WebAssembly, bundles scripts and
// styles, names each file after its content, and puts compressed copies beside it. What is already
// there is not made again. .make/build calls it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** The code of the customers' pages, and the code of all pages, which staff load. */
const programs = ['heliograph', 'support'];
const tool = 'target/debug/frontend-bindings';
const completed = 'target/front/site';
const site = 'target/site';
const pkg = join(site, 'pkg');
/** The first versions with light-dark() and nesting; for older ones rules would be rewritten. */
const browsers = ['chrome123', 'edge123', 'firefox120', 'safari17.5', 'ios17.5'];

programs.forEach(completeWebAssembly);
const names = await bundle();
names.forEach(compress);
publish(names);

/** Adds the script that loads the WebAssembly, and shrinks it. Of all this it takes longest. */
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
  const raw = join(folder, 'heliograph_bg.wasm');
  const features = ['--enable-bulk-memory', '--enable-nontrapping-float-to-int'];
  const optimised = join(folder, 'heliograph.wasm');
  const options = ['-Oz', ...features, raw, '-o', optimised];
  execFileSync('frontend/node_modules/.bin/wasm-opt', options, { stdio: 'inherit' });
  writeFileSync(stamp, wanted);
}

/** Writes scripts, WebAssembly and styles, and returns the names they have in the folder `pkg`. */
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

/** Puts a brotli and a gzip copy beside a file, for the server to send as they are. */
function compress(name) {
  const path = join(pkg, name);
  if (existsSync(`${path}.br`) && existsSync(`${path}.gz`)) return;
  const content = readFileSync(path);
  const parameters = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.gz`, gzipSync(content, { level: constants.Z_BEST_COMPRESSION }));
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params: parameters }));
}

/** Tells the server the names, in the form that leptos reads, and removes what is out of date. */
function publish(names) {
  for (const program of programs) {
    const own = names.filter((name) => name.startsWith(`${program}.`));
    const lines = own.map((name) => {
      const [, hash] = name.split('.');
      return `${extname(name).slice(1)}: ${hash}\n`;
    });
    const list = join(site, program === 'heliograph' ? 'hash.txt' : `${program}-hash.txt`);
    // In one step: a running server reads it for each page.
    writeFileSync(`${list}.new`, lines.join(''));
    renameSync(`${list}.new`, list);
  }
  const current = new Set(names.flatMap((name) => [name, `${name}.br`, `${name}.gz`]));
  for (const name of readdirSync(pkg)) {
    if (!current.has(name)) rmSync(join(pkg, name), { recursive: true });
  }
}
