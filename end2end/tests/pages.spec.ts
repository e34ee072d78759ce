import { mkdirSync } from 'node:fs';
import { type Page, expect, test } from '../support/test.js';
import { axeFaults, misnamed, overflowing } from '../support/faults.js';
import { unique } from '../support/portal.js';
import { Receiver } from '../support/receiver.js';

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 375, height: 812 };
/** The narrowest screen on which all pages have to be usable. */
const NARROWEST = { width: 320, height: 640 };

type Look = (name: string) => Promise<void>;

/** Checks the open page in all sizes and colour schemes. Saves screenshots in `artefacts/`. */
const lookedAt = test.extend<{ look: Look }>({
  look: async ({ portal, browser, server, scripts }, use) => {
    const { page } = portal;
    const folder = `artefacts/${test.info().project.name}`;
    mkdirSync(folder, { recursive: true });
    // axe needs scripts. Without them, it checks a copy of the page.
    const context = scripts
      ? undefined
      : await browser.newContext({ baseURL: server.url, javaScriptEnabled: true });
    const copy = await context?.newPage();

    await use((name) =>
      test.step(name, async () => {
        await expect(page.getByRole('heading', { level: 1 })).toHaveCount(1);
        await expect(page).toHaveTitle(/Heliograph/);
        await expect(page.locator('html')).toHaveAttribute('lang', 'en');
        if (copy) await show(copy, page.url(), await page.content());

        // Scripts don't change the colours, so without scripts one colour scheme is enough.
        for (const colorScheme of scripts ? (['light', 'dark'] as const) : (['light'] as const)) {
          const media = { colorScheme, reducedMotion: 'reduce' } as const;
          await page.emulateMedia(media);
          for (const size of [NARROW, WIDE]) {
            await page.setViewportSize(size);
            expect(await overflowing(page), `elements that overflow at ${size.width}`).toEqual([]);
            const path = `${folder}/${name}-${size.width}-${colorScheme}.png`;
            // The API reference is long, and a busy machine needs more than the usual time for it.
            await page.screenshot({ path, fullPage: true, timeout: 60_000 });
          }
          await copy?.emulateMedia(media);
          expect(await axeFaults(copy ?? page), `${name}, ${colorScheme}`).toEqual([]);
        }

        expect(await misnamed(page), `${name}, names and ids`).toEqual([]);
        await page.setViewportSize(NARROWEST);
        expect(await overflowing(page), `elements that overflow at ${NARROWEST.width}`).toEqual([]);
        await page.setViewportSize(WIDE);
        await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
      }),
    );
    await context?.close();
  },
});

/** Shows a page's content without its scripts, with the server's style sheet. */
async function show(page: Page, url: string, content: string): Promise<void> {
  const body = content.replace(/<script\b[\s\S]*?<\/script>|<link[^>]*preload[^>]*>/g, '');
  const answer = { contentType: 'text/html; charset=utf-8', body };
  await page.route(url, (route) => route.fulfill(answer));
  await page.goto(url);
  await page.unroute(url);
}

lookedAt('pages for everybody', async ({ portal, look, watch }) => {
  test.setTimeout(180_000);
  watch.expects(/404/);
  const visit = async (path: string, name: string) => {
    await portal.open(path);
    await look(name);
  };
  await visit('/', 'home');
  await visit('/register', 'register');
  await visit('/login', 'login');
  await portal.fillSignIn({ email: 'nobody@example.org', password: 'not the password' });
  await expect(portal.alert(/wrong/)).toBeVisible();
  await look('login-refused');
  await visit('/forgot', 'forgot');
  await visit('/reset/0123456789abcdef', 'reset');
  await visit('/docs', 'docs');
  await visit('/no/such/page', 'not-found');
  await portal.register();
  await visit('/', 'home-signed-in');
});

lookedAt('pages of a new customer', async ({ portal, look }) => {
  test.setTimeout(180_000);
  await portal.register();
  await look('applications-empty');
  await portal.open('/reports');
  await look('reports-empty');
  await portal.open('/account');
  await look('account');
  await portal.open('/applications/new');
  await look('application-new');
  await portal.fillApplication('My Shop', 'SMS');
  await portal.button('Create application').click();
  await expect(portal.alert(/sender name/)).toBeVisible();
  await look('application-new-refused');
  await portal.fillApplication(unique('P').slice(0, 9), 'SMS');
  await portal.button('Create application').click();
  await portal.readKeys();
  await look('application-created');
});

lookedAt('pages of a customer who sends', async ({ portal, look, server, anotherBrowser }) => {
  test.setTimeout(600_000);
  const sender = unique('P').slice(0, 9);
  const { key, testKey, reference, ...account } = await portal.customer(sender);
  await server.staff('sender', 'accept', await portal.senderRequest(sender));
  const sent = [];
  for (const [number, text] of [
    ['58000001', 'Your code is 4711'],
    ['00000002', 'To a handset that is off'],
    ['00000004', 'Refused by the carrier'],
    ['27820000001', `${'A long message to another country. '.repeat(9)}`],
  ] as const) {
    sent.push((await server.send(key, number, text)).body['transid'] as string);
  }
  for (const transid of sent) await portal.settled(key, transid);
  const tried = await server.send(testKey, '00000001', 'With the test key');
  await portal.settled(testKey, tried.body['transid']);
  const done = await portal.uploaded(key, [['58000002', 'One of two'], ['00000003', 'Expires']]);
  const slowRows: [string, string][] = [['00000001', 'At once'], ['00000005', 'In 30 seconds']];
  const slow = await server.upload(key, slowRows);
  await (await anotherBrowser()).signIn(account);
  await portal.createApplication('', 'Electricity');

  const visit = async (path: string, name: string) => {
    await portal.open(path);
    await look(name);
  };
  await visit('/applications', 'applications');
  await visit(`/applications/${reference}`, 'application');
  for (const page of [
    'messages',
    'inbound',
    'statement',
    'sender',
    'keys',
    'settings',
    'check-file',
    'start',
  ]) {
    await visit(`/applications/${reference}/${page}`, `application-${page}`);
  }
  const receiver = await Receiver.start();
  await portal.open(`/applications/${reference}/webhooks`);
  await look('webhooks-empty');
  await portal.form('Add endpoint').getByLabel('URL').fill(receiver.url);
  await portal.button('Add endpoint').click();
  await expect(portal.page.getByLabel('Signing secret')).toHaveValue(/^whsec_/);
  await look('webhook-created');
  await portal.button('Check endpoint').click();
  await expect(portal.main).toContainText('Your endpoint has a problem');
  await look('webhook-checked');
  receiver.status = 500;
  await portal.button('Send test event').click();
  await expect(portal.row('failed 500')).toBeVisible();
  await look('webhook');
  await portal.row('failed 500').getByRole('link').click();
  await expect(portal.heading('Body')).toBeVisible();
  await look('webhook-event');
  await visit(`/applications/${reference}/webhooks`, 'webhooks');
  await fetch(`${server.url}/sms/optouts/${key}?number=71234568`, { method: 'POST' });
  await visit(`/applications/${reference}/optouts?remove=%2B26671234568`, 'optouts');
  await portal.open(`/applications/${reference}/verify`);
  await look('codes-empty');
  await portal.page.getByLabel('Website (optional)').fill('not a website');
  await portal.button('Save').click();
  await look('codes-refused');
  await portal.page.getByLabel('Website (optional)').fill('shop.example.com');
  await portal.page.getByLabel('Language, unless the call names one').selectOption('Sesotho');
  await portal.button('Save').click();
  await expect(portal.page.getByText('The settings of codes are saved.')).toBeVisible();
  await fetch(`${server.url}/sms/verify/start/${key}?number=58000007`, { method: 'POST' });
  await visit(`/applications/${reference}/verify`, 'codes');
  await expect(portal.main).toContainText('0 of 1 numbers were verified');
  await receiver.stop();
  await portal.open(`/applications/${reference}/keys?replace=live`);
  await look('application-replace-key');
  await visit(`/reports/${slow.body['batchid']}`, 'batch');
  await visit(`/reports/${done}`, 'batch-done');
  await visit('/reports', 'reports');
  await portal.page.getByText('The chart as a table').click();
  await look('reports-table');
  await visit('/reports?status=delivered&number=58000001', 'reports-filtered');
  await visit(`/reports/${sent[3]}`, 'report');
  await visit('/devices', 'devices');
  await visit('/account/close', 'account-close');
  await visit('/docs', 'docs-signed-in');
  const reason = 'Complaints about unwanted messages.';
  await server.staff('application', 'suspend', reference, '--reason', reason);
  await portal.open(`/applications/${reference}`);
  await look('application-suspended');
  await portal.open(`/applications/${reference}/sender`);
  await portal.form('Request sender name').getByLabel('Sender name').fill(unique('Q').slice(0, 9));
  await portal.button('Request sender name').click();
  await expect(portal.main).toContainText('pending');
  await look('application-sender-pending');
});

lookedAt('pages of staff', async ({ portal, look, server }) => {
  test.setTimeout(180_000);
  const { email, password, app } = await portal.staff();
  await portal.open('/account/two-factor');
  await look('two-factor');
  await portal.open('/account/two-factor?replace=1');
  await look('two-factor-set-up');
  await portal.button('Sign out').click();
  await portal.at('/');
  await portal.open('/login/code');
  await look('login-code');
  await portal.signInByCode({ email, password }, app);
  await portal.open('/support');
  await look('support');
  await portal.open('/support/prices?number=27821234567');
  await look('support-prices');
  // Two columns on wide screens.
  const places = ['Base prices', 'Price of a prefix'].map((name) => portal.heading(name));
  const [base, prefix] = await Promise.all(places.map((heading) => heading.boundingBox()));
  expect(prefix!.y).toBe(base!.y);
  expect(prefix!.x).toBeGreaterThan(base!.x + base!.width);
  await portal.open('/support/audit');
  await look('support-audit');
  const audit = portal.page.getByRole('region', { name: 'Audit', exact: true });
  const hidden = await audit.evaluate((region) => region.scrollWidth - region.clientWidth);
  expect(hidden, 'columns of the audit log beyond 1280 pixels').toBeLessThanOrEqual(0);
  await portal.open('/support/numbers');
  await look('support-numbers');
  await portal.open('/support/inbound');
  await look('support-inbound');
  await portal.open('/support/margin');
  await look('support-margin');
  await portal.open('/support/carriers');
  await expect(portal.fact('State')).toHaveText('up');
  await look('carriers');
  await portal.button('Drain sandbox').click();
  await portal.at(/^\/support\/confirm\?/);
  await look('support-confirm');
  await portal.confirms('Drain');
  await expect(portal.fact('State')).toContainText('drained');
  await look('carriers-drained');
  await server.staff('carrier', 'resume', 'sandbox');
});
