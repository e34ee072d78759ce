import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const workspace = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const target = join(workspace, 'target');
const binary = resolve(process.env['HELIOGRAPH_BIN'] ?? join(target, 'debug/heliograph'));
const site = resolve(process.env['HELIOGRAPH_SITE_ROOT'] ?? join(target, 'site'));

const READY_WITHIN_MS = 20_000;
const STOP_WITHIN_MS = 25_000;
/** The delay of the sandbox carrier: long enough for a page to show a message on its way. */
const SANDBOX_DELAY_MS = 100;

export interface Answer {
  status: number;
  /** The JSON of the answer. */
  body: Record<string, any>;
}

/** The real program, with its own database and ports. */
export class Server {
  readonly url: string;
  private readonly ops: string;
  private readonly environment: Record<string, string>;
  private readonly secrets = new Set<string>();
  private process: ChildProcess | undefined;
  private log = '';

  private constructor(
    private readonly folder: string,
    port: number,
    opsPort: number,
    settings: Record<string, string>,
    host: string,
  ) {
    this.url = `http://${host}:${port}`;
    this.ops = `http://127.0.0.1:${opsPort}`;
    this.environment = {
      PATH: process.env['PATH'] ?? '',
      RUST_BACKTRACE: '1',
      HELIOGRAPH_ADDR: `127.0.0.1:${port}`,
      HELIOGRAPH_OPS_ADDR: `127.0.0.1:${opsPort}`,
      HELIOGRAPH_BASE_URL: this.url,
      HELIOGRAPH_DATABASE_URL: `sqlite:${join(folder, 'heliograph.db')}`,
      HELIOGRAPH_DATA_DIR: folder,
      HELIOGRAPH_SITE_ROOT: site,
      HELIOGRAPH_ALLOW_SANDBOX: 'true',
      HELIOGRAPH_SANDBOX_DELAY_MS: String(SANDBOX_DELAY_MS),
      // The tests receive events on this machine.
      HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
      HELIOGRAPH_WEBHOOK_NETWORKS: '127.0.0.0/8',
      // All test browsers share one address.
      HELIOGRAPH_REGISTRATIONS_MAX: '100000',
      HELIOGRAPH_SIGN_IN_FAILURES_MAX: '100000',
      HELIOGRAPH_LOG: 'debug',
      ...settings,
    };
  }

  /** Starts a server. `host` is the host name in its URL. */
  static async start(
    settings: Record<string, string> = {},
    host = '127.0.0.1',
  ): Promise<Server> {
    try {
      accessSync(binary, constants.X_OK);
    } catch {
      throw new Error(`There is no program at ${binary}: build it first (make test-browser).`);
    }
    const [port, opsPort] = await freePorts();
    const folder = mkdtempSync(join(tmpdir(), 'heliograph-'));
    const server = new Server(folder, port, opsPort, settings, host);
    const child = spawn(binary, ['serve'], {
      // A folder without a settings file, so that nobody's own settings are read.
      cwd: server.folder,
      env: server.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    server.process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (server.log += text));
    }
    await server.ready();
    return server;
  }

  private async ready(): Promise<void> {
    const until = Date.now() + READY_WITHIN_MS;
    while (Date.now() < until && this.process?.exitCode === null) {
      const answer = await fetch(`${this.ops}/readyz`).catch(() => undefined);
      if (answer?.ok) return;
      await new Promise((next) => setTimeout(next, 20));
    }
    this.process?.kill('SIGKILL');
    throw new Error(`The server didn't become ready:\n${this.log}`);
  }

  /** Stops the server as an operator would. Checks its exit code, its data and its log. */
  async stop(): Promise<void> {
    const child = this.process;
    if (!child) return;
    if (child.exitCode === null) {
      const ended = new Promise((done) => child.once('exit', done));
      child.kill('SIGTERM');
      const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
      await ended;
      clearTimeout(deadline);
    }
    const faults: string[] = [];
    if (child.exitCode !== 0) {
      faults.push(`it ended with ${child.exitCode ?? child.signalCode} instead of 0`);
    }
    const check = await this.run(['check']);
    if (check.code !== 0) faults.push(`its check found: ${check.stdout}${check.stderr}`);
    if (/panicked/i.test(this.log)) faults.push('it panicked');
    const errors = this.log.split('\n').filter((line) => /\bERROR\b|"level":"ERROR"/.test(line));
    if (errors.length > 0) faults.push(`it logged errors: ${errors.slice(0, 10).join('\n')}`);
    for (const secret of this.secrets) {
      if (this.log.includes(secret)) faults.push(`its log shows ${secret}`);
    }
    if (faults.length > 0) {
      throw new Error(`The server: ${faults.join('; ')}.\n${this.log.slice(-4_000)}`);
    }
    rmSync(this.folder, { recursive: true });
  }

  /** Adds keys, passwords, numbers or texts that must never appear in the log. */
  keepsSecret(...secrets: string[]): void {
    for (const secret of secrets) this.secrets.add(secret);
  }

  /** Runs a command while the server runs. Returns its result, even if it failed. */
  run(args: string[], input = ''): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((done) => {
      const options = { cwd: this.folder, env: this.environment };
      const child = execFile(binary, args, options, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code ?? -1);
        done({ code, stdout, stderr });
      });
      // A command may end before it reads its input: its result tells whether it needed it.
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    });
  }

  /** Adds a staff account. */
  async addStaff(email: string, password: string): Promise<void> {
    this.keepsSecret(password);
    const arguments_ = ['account', 'add', email, '--staff', '--password-stdin'];
    const { code, stderr } = await this.run(arguments_, `${password}\n`);
    if (code !== 0) throw new Error(`A staff account can't be added: ${stderr}`);
  }

  /** Runs a command that has to succeed, and returns its JSON output. */
  async staff(...args: string[]): Promise<any> {
    const { code, stdout, stderr } = await this.run([...args, '--json']);
    if (code !== 0) throw new Error(`heliograph ${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** Calls the SMS API by GET. */
  async api(path: string, parameters: Record<string, string> = {}): Promise<Answer> {
    const query = new URLSearchParams(parameters).toString();
    const answer = await fetch(`${this.url}/sms/${path}${query ? `?${query}` : ''}`);
    return { status: answer.status, body: (await answer.json()) as Record<string, any> };
  }

  /** Uploads rows through the API. A row is a number and a message. */
  async upload(
    key: string,
    rows: [string, string][],
    more: Record<string, string> = {},
  ): Promise<Answer> {
    for (const [number, message] of rows) {
      if (!/^0{5}/.test(number)) this.keepsSecret(number);
      this.keepsSecret(message);
    }
    const bulksms = rows.map((row) => row.join(',')).join('\n');
    const body = new URLSearchParams({ ...more, bulksms });
    const answer = await fetch(`${this.url}/sms/bulk/${key}`, { method: 'POST', body });
    return { status: answer.status, body: (await answer.json()) as Record<string, any> };
  }

  /** Sends a message through the API. */
  send(key: string, number: string, message: string): Promise<Answer> {
    if (!/^0{5}/.test(number)) this.keepsSecret(number);
    this.keepsSecret(message);
    return this.api(`send/${key}`, { number, message });
  }
}

/** Returns two free ports. Both are held at the same time, so they differ. */
export async function freePorts(): Promise<[number, number]> {
  const holders = await Promise.all([holdPort(), holdPort()]);
  const ports = holders.map((holder) => (holder.address() as { port: number }).port);
  await Promise.all(holders.map((holder) => new Promise((done) => holder.close(done))));
  return [ports[0]!, ports[1]!];
}

function holdPort(): Promise<ReturnType<typeof createServer>> {
  return new Promise((held, failed) => {
    const holder = createServer();
    holder.once('error', failed);
    holder.listen(0, '127.0.0.1', () => held(holder));
  });
}
