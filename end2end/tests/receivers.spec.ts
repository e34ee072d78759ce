import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { type Server, freePorts } from '../support/server.js';
import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

const run = promisify(execFile);
const workspace = join(import.meta.dirname, '../..');

/** The languages, each with the file name of its receiver. */
const languages: [string, string][] = [
  ['JavaScript', 'receive.mjs'],
  ['Python', 'receive.py'],
  ['PHP', 'receive.php'],
  ['Java', 'Receive.java'],
];

function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

/** Changes an endpoint through the API. */
async function change(
  server: Server,
  path: string,
  parameters: Record<string, string>,
): Promise<Record<string, any>> {
  const body = new URLSearchParams(parameters);
  const answer = await fetch(`${server.url}/sms/webhooks/${path}`, { method: 'POST', body });
  const changed = (await answer.json()) as Record<string, any>;
  expect(changed, path).toMatchObject({ code: 200 });
  if (changed['secret']) server.keepsSecret(changed['secret']);
  return changed;
}

for (const [language, file] of languages) {
  test(`the receiver in ${language} takes our events and nobody else's`, async ({
    portal,
    server,
  }) => {
    const { reference, testKey } = await portal.customer();
    await portal.open(`/applications/${reference}/start`);
    await portal.link(language).click();
    await expect(portal.link(language)).toHaveAttribute('aria-current', 'page');
    const block = (pattern: RegExp) =>
      portal.main.locator('pre').filter({ hasText: pattern }).innerText();
    const program = await block(/hmac/i);
    const save = portal.main.locator('p', { hasText: `Save it as ${file} and run` });
    const command = await save.locator('code').nth(1).innerText();
    const [port] = await freePorts();
    const here = (words: string) => words.replace('127.0.0.1:8000', `127.0.0.1:${port}`);
    /** Runs a command of the page in a shell, and returns the JSON that it prints. */
    const shell = async (words: string) => {
      const env = { ...process.env, HELIOGRAPH_KEY: testKey };
      return JSON.parse((await run('sh', ['-c', words], { env })).stdout);
    };

    const created = await shell(here(await block(/url=/)));
    const { secret, webhook } = created as { secret: string; webhook: { webhookid: string } };
    server.keepsSecret(secret);
    const sendTest = (await block(/test=1/)).replace('w_YOUR_WEBHOOK_ID', webhook.webhookid);

    const folder = await mkdtemp(join(tmpdir(), 'receiver-'));
    await writeFile(join(folder, file), program);
    const receiver = spawn('sh', ['-c', `exec ${here(command)}`], {
      cwd: folder,
      env: {
        ...process.env,
        HELIOGRAPH_WEBHOOK_SECRET: secret,
        PORT: String(port),
        TMPDIR: folder,
      },
    });
    let printed = '';
    for (const stream of [receiver.stdout, receiver.stderr]) {
      stream.setEncoding('utf8').on('data', (words: string) => (printed += words));
    }
    const lines = (id: string) => printed.split('\n').filter((line) => line.includes(id)).length;
    const url = `http://127.0.0.1:${port}/`;

    try {
      const listens = () => fetch(url).then(() => true, () => false);
      await expect.poll(listens, { message: 'whether it listens', timeout: 30_000 }).toBe(true);

      const { attempt } = await shell(sendTest);
      expect(attempt, printed).toMatchObject({ type: 'webhook.test', status: 204, error: null });
      await expect.poll(() => lines(attempt.event)).toBe(1);
      const { body } = await server.send(testKey, '00000001', 'To the receiver');
      await expect.poll(() => lines(body['transid'])).toBe(1);

      /** Sends an event to the receiver, and returns the status of the answer. */
      const deliver = async (id: string, minutesAgo: number, signedWith = secret, more = '') => {
        const at = new Date(Date.now() - minutesAgo * 60_000);
        const event = JSON.stringify({ id, type: 'webhook.test', data: {} });
        const headers = {
          'webhook-id': id,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': new Webhook(signedWith).sign(id, at, event),
        };
        const answer = await fetch(url, { method: 'POST', headers, body: event + more });
        return answer.status;
      };
      const id = unique('e_');
      expect(await deliver(id, 0), 'an event').toBe(204);
      await expect.poll(() => lines(id)).toBe(1);
      expect(await deliver(id, 0), 'the event again').toBe(204);
      expect(await deliver(unique('e_'), 4), 'a late event').toBe(204);
      const refused = unique('e_');
      expect(await deliver(refused, 0, newSecret()), 'a forged event').toBe(401);
      expect(await deliver(refused, 0, secret, ' '), 'a changed event').toBe(401);
      expect(await deliver(refused, 10), 'an old event').toBe(401);
      expect(await deliver(refused, -10), 'an event of the future').toBe(401);
      expect((await fetch(url, { method: 'POST', body: '{}' })).status, 'no signature').toBe(401);

      // For a day, we sign with the old secret too.
      await change(server, `${testKey}/${webhook.webhookid}`, { rotate: '1' });
      const rotated = await shell(sendTest);
      expect(rotated.attempt, printed).toMatchObject({ status: 204 });
      await expect.poll(() => lines(rotated.attempt.event)).toBe(1);
      expect(lines(id), 'how often the repeated event is printed').toBe(1);
      expect(lines(refused), 'how often the refused events are printed').toBe(0);
    } finally {
      receiver.kill();
      await rm(folder, { recursive: true });
    }
  });
}

test('the quick start in curl creates an endpoint and refers to the receivers', async ({
  portal,
}) => {
  const { reference } = await portal.customer();
  await portal.open('/docs#webhooks');
  await portal.main.locator(`a[href="/applications/${reference}/start#receive"]`).click();
  await portal.at(`/applications/${reference}/start`);
  await portal.link('curl').click();
  await expect(portal.main).toContainText('Choose JavaScript, Python, PHP or Java above');
  await expect(portal.main.locator('pre', { hasText: 'test=1' })).toBeVisible();
});

test('the libraries of Standard Webhooks verify our events', async ({ portal, server }) => {
  const { testKey } = await portal.customer();
  const deliveries: { headers: IncomingHttpHeaders; body: string }[] = [];
  const endpoint = createServer(async (request, response) => {
    const body = await text(request);
    deliveries.push({ headers: request.headers, body });
    response.writeHead(204).end();
  });
  await new Promise<void>((listens) => endpoint.listen(0, '127.0.0.1', listens));
  const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`;
  const created = await change(server, testKey, { url });
  const secret: string = created['secret'];
  const path = `${testKey}/${created['webhook'].webhookid}`;
  await change(server, path, { test: '1' });
  await server.send(testKey, '00000001', 'Grüße an alle');
  await expect.poll(() => deliveries.length, { message: 'deliveries' }).toBe(2);
  const rotated: string = (await change(server, path, { rotate: '1' }))['secret'];
  await change(server, path, { test: '1' });
  endpoint.close();

  const [tested, delivered, both] = deliveries as [any, any, any];
  const cases = [
    { ...tested, secret, type: 'webhook.test' },
    { ...delivered, secret, type: 'message.delivered' },
    { ...both, secret, type: 'webhook.test' },
    { ...both, secret: rotated, type: 'webhook.test' },
    { ...both, secret: newSecret(), type: null },
    { ...delivered, secret: rotated, type: null },
    { ...delivered, body: `${delivered.body} `, secret, type: null },
  ];
  const types = cases.map(({ type }) => type);
  const byNode = cases.map(({ secret, body, headers }) => {
    try {
      return (new Webhook(secret).verify(body, headers) as { type: string }).type;
    } catch {
      return null;
    }
  });
  expect(byNode, 'what the package from npm verifies').toEqual(types);

  const env = { ...process.env, PYTHONPATH: join(workspace, '.tools/verifiers') };
  const python = run('python3', [join(workspace, 'end2end/support/verify.py')], { env });
  python.child.stdin?.end(JSON.stringify(cases));
  const byPython = JSON.parse((await python).stdout);
  expect(byPython, 'what the package from PyPI verifies').toEqual(types);
});
