import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@playwright/test';

const run = promisify(execFile);
const programs = join(import.meta.dirname, '../../app/src/applications/programs');
/** The pause that the service asks for. It is longer than the programs' own pause. */
const PAUSE_S = 2;

interface Call {
  at: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Starts a service that is unavailable, then busy, then accepts. It records the calls. */
async function busyService() {
  const calls: Call[] = [];
  const service = createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    calls.push({ at: performance.now(), headers: request.headers, body });
    const [status, answer, headers] = [
      [503, { code: 500, reason: 'unavailable' }, { 'Retry-After': PAUSE_S }] as const,
      [429, { code: 500, reason: 'rate_limited' }, { 'Retry-After': 1 }] as const,
      [200, { code: 200, transid: 'm_0000000000000', cost: 0.05 }, {}] as const,
    ][Math.min(calls.length, 3) - 1]!;
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((listening) => service.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  return { calls, url, close: () => new Promise((closed) => service.close(closed)) };
}

for (const [interpreter, file] of [
  ['sh', 'send.sh'],
  ['node', 'send.mjs'],
  ['python3', 'send.py'],
  ['php', 'send.php'],
  ['java', 'Send.java'],
] as const) {
  test(`${file} sends again when the service asks for it`, async () => {
    const service = await busyService();
    const folder = await mkdtemp(join(tmpdir(), 'retries-'));
    try {
      const program = await readFile(join(programs, file), 'utf8');
      const text = program.replaceAll('BASE_URL', service.url).replaceAll('NUMBER', '00000001');
      await writeFile(join(folder, file), text);
      const env = { ...process.env, HELIOGRAPH_KEY: 'key' };
      const { stdout } = await run(interpreter, [join(folder, file)], { env });
      expect(stdout).toContain('m_0000000000000');
    } finally {
      await service.close();
      await rm(folder, { recursive: true });
    }
    expect(service.calls).toHaveLength(3);
    const [first, second, third] = service.calls as [Call, Call, Call];
    expect(second.at - first.at).toBeGreaterThan(PAUSE_S * 1000 - 100);
    expect(first.headers['idempotency-key']).toMatch(/^\S+$/);
    for (const again of [second, third]) {
      expect(again.headers['idempotency-key']).toBe(first.headers['idempotency-key']);
      expect(again.body).toBe(first.body);
    }
  });
}
