import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Locator } from '@playwright/test';
import { expect, test } from '../support/test.js';
import { newAccount } from '../support/portal.js';

const run = promisify(execFile);
const docs = join(import.meta.dirname, '../../docs');
/** Whether to replace the pictures in `docs/tour`. `make tour` sets the variable. */
const makesPictures = process.env['TOUR_PICTURES'] === '1';

// The tour of docs/TOUR.md. A newcomer follows only what the pages show: links, buttons and
// snippets.
test('a newcomer comes from the front page to the first delivered message', async ({
  portal,
  server,
}) => {
  const { page } = portal;
  await page.setViewportSize({ width: 1000, height: 800 });
  const headings = (await readFile(join(docs, 'TOUR.md'), 'utf8')).match(/^## .+$/gm) ?? [];
  let shown = 0;
  /** Runs a step, checks its heading in docs/TOUR.md, and takes a picture at its end. */
  const step = async (title: string, act: () => Promise<void>, focus?: () => Locator) => {
    await test.step(title, act);
    shown += 1;
    expect(headings[shown - 1], 'the heading in docs/TOUR.md').toBe(`## ${shown}. ${title}`);
    if (!makesPictures) return;
    if (focus) await focus().evaluate((element) => element.scrollIntoView());
    await page.screenshot({ path: join(docs, 'tour', `${String(shown).padStart(2, '0')}.png`) });
  };
  /** Runs a shell command exactly as a page shows it. */
  const shell = async (command: string, env = {}) => {
    const { stdout } = await run('sh', ['-c', command], { env: { ...process.env, ...env } });
    return JSON.parse(stdout) as { code: number; transid: string };
  };
  const account = newAccount();
  server.keepsSecret(account.password);
  const next = (name: string) =>
    portal.page.getByRole('region', { name: 'First steps' }).getByRole('link', { name });

  await step('Read the front page', async () => {
    await portal.open('/');
    await expect(portal.heading('Text messages from your systems')).toBeVisible();
  });

  await step('Create an account', async () => {
    await portal.link('Create account').click();
    const form = portal.form('Create account');
    await form.getByLabel('Email').fill(account.email);
    await form.getByLabel('Password').fill(account.password);
  });

  await step('See the first steps', async () => {
    await portal.button('Create account').click();
    await portal.at('/applications');
    await expect(next('Create an SMS application')).toBeVisible();
  });

  await step('Create an application', async () => {
    await next('Create an SMS application').click();
    await portal.at('/applications/new');
    await expect(portal.button('Create application')).toBeVisible();
  });

  await step('Keep the keys', async () => {
    await portal.button('Create application').click();
    await portal.at(/^\/applications\/[0-9]{6}$/);
    await expect(portal.main.getByText('Save this now')).toBeVisible();
  });
  const { reference, key } = await portal.readKeys();

  await step(
    'Try the test key',
    async () => {
      const command = await portal.main.locator('pre').first().innerText();
      expect(await shell(command)).toMatchObject({ code: 200 });
      await portal.link('My Applications').click();
      const tried = portal.page.getByRole('listitem').filter({ hasText: 'Try the test key' });
      await expect(tried).toHaveText(/^Done: /);
    },
    () => portal.heading('First steps'),
  );

  await step(
    'Request activation',
    async () => {
      await next('Ask for activation').click();
      await portal.button('Request activation').click();
      await expect(portal.main).toContainText('You requested activation');
    },
    () => portal.heading('Can this application send now?'),
  );

  await step(
    'Make a deposit',
    async () => {
      await server.staff('application', 'approve', reference);
      await portal.link('My Applications').click();
      await next('Make a deposit').click();
      await expect(portal.heading('Deposits')).toBeVisible();
    },
    () => portal.heading('Deposits'),
  );

  await step(
    'See that it can send',
    async () => {
      await portal.deposit({ reference, key, testKey: '' }, '10');
      await portal.reload();
      const panel = portal.page.getByRole('region', { name: 'Can this application send now?' });
      await expect(panel).toContainText('Yes.');
    },
    () => portal.heading('Can this application send now?'),
  );

  let transid = '';
  await step('Send the first message', async () => {
    await portal.link('My Applications').click();
    await next('Send the first message').click();
    await portal.at(`/applications/${reference}/start`);
    const command = await portal.main.locator('pre').nth(1).innerText();
    const sent = await shell(command, { HELIOGRAPH_KEY: key });
    expect(sent).toMatchObject({ code: 200 });
    transid = sent.transid;
  });

  await step('See that it was delivered', async () => {
    await portal.settled(key, transid);
    await portal.link('Reports').click();
    await portal.link(transid).click();
    await portal.at(`/reports/${transid}`);
    await expect(portal.main).toContainText('delivered');
  });
  expect(shown, 'the steps of docs/TOUR.md').toBe(headings.length);
});
