import { expect, test } from '../support/test.js';
import { axeFaults, indistinct, overflowing } from '../support/faults.js';
import { newAccount, unique } from '../support/portal.js';

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 375, height: 812 };
const NARROWEST = { width: 320, height: 640 };
const RIGHT_TO_LEFT = 'تأخير في التسليم، نعمل على حله (حتى 18:00)';

type Look = (name: string) => Promise<void>;

/**
 * Checks the open page in its current state: in both colour schemes, in the system's colours, on
 * the narrowest screen, and with text of twice the size. Reports all faults of a test together.
 */
const looked = test.extend<{ look: Look }>({
  look: async ({ page, browserName }, use) => {
    const faults: string[] = [];
    await use((name) =>
      test.step(name, async () => {
        const size = page.viewportSize() ?? WIDE;
        const note = (where: string, found: string[]) =>
          faults.push(...found.map((fault) => `${name}, ${where}: ${fault}`));

        note('light', await axeFaults(page));
        await page.emulateMedia({ colorScheme: 'dark' });
        note('dark', await axeFaults(page, 'color-contrast'));
        await page.emulateMedia({ forcedColors: 'active' });
        note('colours of the system', await indistinct(page));
        await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' });

        // A screen of 640 pixels at a zoom of 200 %.
        await page.setViewportSize(NARROWEST);
        note('320 px', await overflowing(page));
        const enlarge = (to: string) =>
          page.evaluate((size) => (document.documentElement.style.fontSize = size), to);
        await enlarge('200%');
        for (const width of [640, 1280]) {
          await page.setViewportSize({ ...WIDE, width });
          note(`large text at ${width} px`, await overflowing(page));
        }
        await enlarge('');
        await page.setViewportSize(size);
        // Playwright can't reduce motion in Firefox.
        if (browserName === 'firefox') return;
        const moving = await page.evaluate(() => document.getAnimations().length);
        if (moving > 0) note('reduced motion', [`${moving} animations`]);
      }),
    );
    expect(faults).toEqual([]);
  },
});

looked.use({ contextOptions: { reducedMotion: 'reduce' } });
looked.beforeEach(({ scripts }) => {
  // axe needs scripts. Without scripts, the states look the same.
  test.skip(!scripts);
  test.setTimeout(120_000);
});

looked('states of pages for everybody', async ({ portal, look, page, server, watch }) => {
  watch.expects(/40[34]|413/);
  await portal.open('/register');
  const form = portal.form('Create account');
  await form.getByLabel('Email').fill('nobody@example.org');
  await form.getByLabel('Password').fill('correct horse');
  await portal.button('Show password').click();
  await look('a password that is shown');
  await form.getByLabel('Password').fill('qwertyuiop');
  await portal.button('Create account').click();
  await expect(portal.alert('follows the alphabet')).toBeVisible();
  await look('a registration that is refused');

  // The browser submits a form that is too large, without the page's scripts.
  await form.getByLabel('Email').fill('x'.repeat(100_000));
  await form.evaluate((form: HTMLFormElement) => form.submit());
  await expect(portal.heading('This is too large')).toBeVisible();
  await look('413');

  await portal.open('/forgot');
  await portal.form('Send reset link').getByLabel('Email').fill('nobody@example.org');
  await portal.button('Send reset link').click();
  await expect(page.getByText('If there is an account with this email')).toBeVisible();
  await look('a reset link that is sent');
  await portal.open('/reset/0123456789abcdef');
  await expect(portal.heading("This link doesn't work")).toBeVisible();
  await look('a reset link that is too old');
  await portal.open('/login?closed=1');
  await look('an account that was closed');

  await portal.register();
  await portal.open('/applications/000000');
  await look('404 of an application');
  await page.setViewportSize(NARROW);
  await portal.open('/applications');
  await portal.button('Menu').click();
  await look('a menu that is open');
  await page.setViewportSize(WIDE);
  await page.route(/\/fn\/reports\b/, (route) => route.abort());
  watch.expects(/ERR_FAILED/);
  await portal.link('Reports').click();
  await expect(portal.heading("This page can't be shown")).toBeVisible();
  await look('a page that could not be loaded');
  await page.unroute(/\/fn\/reports\b/);

  // A form of another site.
  await page.goto('about:blank');
  const address = `${server.url}/fn/sign-out`;
  await page.setContent(`<form method="post" action="${address}"><button>Go</button></form>`);
  await page.getByRole('button').click();
  await expect(portal.heading('This is not allowed')).toBeVisible();
  await look('403');
});

looked('states of an application', async ({ portal, look, page }) => {
  const { reference } = await portal.customer();
  const own = `/applications/${reference}`;
  await portal.open('/applications/new');
  await portal.fillApplication('My Shop', 'SMS');
  await look('a sender name that is typed wrong');
  await portal.fillApplication('MyShop', 'SMS');
  await portal.button('Create application').click();
  await expect(portal.alert('You already have an application of this category')).toBeVisible();
  await look('an application that is refused');

  await portal.open(`${own}/keys?replace=live`);
  await portal.form('Replace key').getByLabel('Password').fill('not the password');
  await portal.button('Replace key').click();
  await expect(portal.alert('The password is wrong.')).toBeVisible();
  await look('a key that is not replaced');
  await portal.open(`${own}/sender`);
  await portal.form('Request sender name').getByLabel('Sender name').fill('My Shop');
  await portal.button('Request sender name').click();
  await expect(portal.alert('A sender name has 1 to 11')).toBeVisible();
  await look('a sender name that is refused');

  await portal.open(`${own}/settings`);
  await page.getByLabel('Low balance').fill('much');
  await portal.button('Save mails').click();
  await expect(portal.alert('Enter an amount')).toBeVisible();
  await look('settings that are refused');
  await page.getByLabel('Low balance').fill('5');
  await portal.button('Save mails').click();
  await expect(page.getByText('The mails are saved.')).toBeVisible();
  await look('settings that are saved');

  await portal.open(`${own}/start?language=java`);
  await page.getByLabel('Text to count').fill(`${RIGHT_TO_LEFT} ${'a'.repeat(200)}`);
  await page.getByLabel('Destination number').fill('58x');
  await look('a counted text with an invalid number');
  await page.getByLabel('Text to count').fill('😀'.repeat(1600));
  await page.getByLabel('Destination number').fill('58001987');
  await look('1,600 emoji that are counted');
});

looked('states of an account', async ({ portal, look, page }) => {
  const { password } = await portal.customer();
  await portal.open('/account');
  const form = portal.form('Change password');
  await form.getByLabel('Current password').fill('not the password');
  await form.getByLabel('New password').fill('correct horse');
  await portal.button('Change password').click();
  await expect(portal.alert('The password is wrong.')).toBeVisible();
  await look('a password that is not changed');
  await portal.button('Save notifications').click();
  await expect(page.getByText('The notifications are saved.')).toBeVisible();
  await look('notifications that are saved');

  await portal.open('/devices');
  const name = portal.form('Save name').getByLabel('Name', { exact: true });
  await name.fill('x'.repeat(61));
  await portal.button('Save name').click();
  await expect(portal.alert('at most 60 characters')).toBeVisible();
  await look('a name of a device that is refused');
  await name.fill(RIGHT_TO_LEFT);
  await portal.button('Save name').click();
  await expect(page.getByText('The name is saved.')).toBeVisible();
  await look('a device with a name from right to left');

  await portal.open('/account/close');
  const closing = portal.form('Close account');
  await closing.getByLabel('References').fill('000000');
  await closing.getByLabel('Password').fill(password);
  await portal.button('Close account').click();
  await expect(portal.alert('Type the reference of each')).toBeVisible();
  await look('an account that is not closed');

  await page.route(/\/fn\/session\b/, (route) => route.fulfill({ json: null }));
  await page.clock.install();
  await portal.open('/applications/new');
  await page.getByLabel('Sender name').fill('MyShop');
  await page.clock.fastForward('29:00');
  await expect(page.locator('.session-notice')).toContainText('You are signed out.');
  await look('a session that ended while a person typed');
});

looked('states of messages', async ({ portal, look, page, server, watch }) => {
  watch.expects(/400/);
  const { key, reference } = await portal.customer();
  await portal.open('/reports?status=failed&number=58000001&key=test');
  await look('filters that find nothing');
  await portal.open('/reports?from=2026-10-02&to=2026-10-01');
  await look('filters that are refused');

  for (const [number, text, state] of [
    ['00000002', RIGHT_TO_LEFT.repeat(3), 'a message from right to left that failed'],
    ['00000004', '😀'.repeat(1600), 'a message of 1,600 emoji that was rejected'],
    ['58000001', 'x'.repeat(1600), 'a message without spaces that was delivered'],
  ] as const) {
    const sent = await server.send(key, number, text);
    await portal.settled(key, sent.body['transid']);
    await portal.open(`/reports/${sent.body['transid']}`);
    await look(state);
  }

  await portal.open('/reports?status=failed');
  await page.getByText('The chart as a table').click();
  await page.getByText('Choose columns').click();
  await expect(page.getByRole('link', { name: 'Remove filter Status: failed' })).toBeVisible();
  await look('filters in use, the chart as a table');
  const today = new Date().toISOString().slice(0, 10);
  const days = `from=${today}&to=${today}`;
  await portal.open(`/applications/${reference}/statement?kind=all&${days}`);
  await look('a day of a statement');
  await server.api(`send/${key}`, { number: '5800', message: '' });
  await portal.open(`/applications/${reference}/start`);
  await look('calls that were refused');
});

looked('states of the support desk', async ({ portal, look, page, anotherBrowser }) => {
  const customer = await anotherBrowser();
  const { reference } = await customer.customer(unique('A').slice(0, 9));
  await portal.staff();
  await portal.open('/support/prices');
  await page.getByLabel('Prefix', { exact: true }).fill('abc');
  await page.getByLabel('Price', { exact: true }).fill('much');
  await portal.button('Set price').click();
  await expect(portal.alert('A prefix is 1 to 15 digits')).toBeVisible();
  await look('a price that is refused');

  await portal.open('/support/carriers');
  await page.getByLabel('Note').fill('x'.repeat(301));
  await portal.button('Open note').click();
  await expect(portal.alert('A note has 1 to 300 characters')).toBeVisible();
  await look('a note that is refused');
  await portal.open('/support/search?q=nobody@example.org');
  await look('a search that finds nothing');
  await portal.open('/support/senders');
  await page.getByText('Reasons to reject').first().click();
  await portal.row(reference).getByRole('button', { name: /^Reject / }).click();
  await portal.confirms('Reject', ' ');
  await expect(portal.alert('Write a reason.')).toBeVisible();
  await look('a decision without a reason');
  await portal.open('/support/applications?list=all');
  await look('a list of applications');
});

test('the longest email and text from right to left fit on every page', async ({
  portal,
  anotherBrowser,
  scripts,
}) => {
  test.skip(!scripts, 'The pages are as wide without scripts.');
  const { password } = newAccount();
  const name = unique('').padEnd(64, 'x');
  const labels = ['a', 'b', 'c'].map((letter) => letter.repeat(60));
  const email = `${name}@${labels.join('.')}.org`.padEnd(254, 'x');
  const { page } = portal;
  await portal.register({ email, password });
  await portal.createApplication();
  const desk = await anotherBrowser();
  await desk.staff();
  await desk.open('/support/carriers');
  await desk.page.getByLabel('Note').fill(RIGHT_TO_LEFT);
  await desk.button('Open note').click();
  await desk.confirms('Open note');
  await expect(desk.row(RIGHT_TO_LEFT)).toHaveCount(1);

  for (const size of [WIDE, NARROWEST]) {
    await page.setViewportSize(size);
    for (const path of ['/applications', '/account', '/devices']) {
      await portal.open(path);
      expect(await overflowing(page), `${path} at ${size.width} px`).toEqual([]);
    }
    await desk.page.setViewportSize(size);
    const query = encodeURIComponent(email);
    for (const path of [
      '/support/applications?list=all',
      `/support/search?q=${query}`,
      `/support/accounts?email=${query}`,
      `/support/audit?subject=${query}`,
      '/support/carriers',
    ]) {
      await desk.open(path);
      expect(await overflowing(desk.page), `${path} at ${size.width} px`).toEqual([]);
    }
  }
  await portal.open('/reports');
  await expect(portal.main.getByText(RIGHT_TO_LEFT)).toBeVisible();
  await desk.row(RIGHT_TO_LEFT).getByRole('button', { name: /^End / }).click();
  await desk.confirms('End');
  await expect(desk.row(RIGHT_TO_LEFT)).toHaveCount(0);
});
