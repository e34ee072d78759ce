import { expect, test } from '../support/test.js';
import { type Account, Portal } from '../support/portal.js';

/** Signs out all browsers except this one. */
async function signOutOthers(portal: Portal, account: Account): Promise<void> {
  await portal.open('/devices');
  const form = portal.form('Sign out all other devices');
  await form.getByLabel('Password').fill(account.password);
  await portal.button('Sign out all other devices').click();
  await expect(portal.page.getByRole('button', { name: /^Sign out this device/ })).toHaveCount(1);
}

/** Fills in a form, ends its session, and then submits the form. */
async function sentTooLate(portal: Portal, other: Portal, account: Account): Promise<void> {
  await portal.open('/applications/new');
  await portal.fillApplication('TypedOnce', 'Electricity');
  await other.signIn(account);
  await signOutOthers(other, account);
  await portal.button('Create application').click();
  await portal.at('/login?next=%2Fapplications%2Fnew');
  await portal.hydrated();
}

test('typed text is restored after signing in again', async ({
  portal,
  anotherBrowser,
}) => {
  const account = await portal.register();
  await sentTooLate(portal, await anotherBrowser(), account);
  // A wrong password in between loses nothing.
  await portal.fillSignIn({ ...account, password: 'not the password' });
  await expect(portal.alert('Email or password is wrong.')).toBeVisible();
  await portal.fillSignIn(account);
  await portal.at('/applications/new');
  await portal.hydrated();
  await expect(portal.alert('You were signed out before this form arrived')).toBeVisible();
  await expect(portal.page.getByLabel('Sender name')).toHaveValue('TypedOnce');
  await expect(portal.page.getByLabel('Category')).toHaveValue('Electricity');
  await portal.page.getByLabel('Sender name').fill('');
  await portal.button('Create application').click();
  await portal.readKeys();

  // The form comes back only once.
  await portal.open('/applications/new');
  await expect(portal.alert('You were signed out before this form arrived')).toHaveCount(0);
  await expect(portal.page.getByLabel('Sender name')).toHaveValue('');
});

test('typed text is restored after signing in with a code', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  await portal.open('/account/two-factor');
  const { app } = await portal.setUpTwoFactor();
  await portal.open('/applications/new');
  await portal.fillApplication('TypedOnce', 'Electricity');
  const other = await anotherBrowser();
  await other.signInByCode(account, app);
  await signOutOthers(other, account);
  await portal.button('Create application').click();
  await portal.at('/login?next=%2Fapplications%2Fnew');
  await portal.hydrated();
  await portal.fillSignIn(account);
  await portal.at('/login/code?next=%2Fapplications%2Fnew');
  await portal.hydrated();
  await portal.page.getByLabel('Code', { exact: true }).fill(await app.code());
  await portal.button('Confirm').click();
  await portal.at('/applications/new');
  await expect(portal.page.getByLabel('Sender name')).toHaveValue('TypedOnce');
});

test('typed text is never shown to another account', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  const [second, third] = [await anotherBrowser(), await anotherBrowser()];
  const stranger = await third.register();
  await sentTooLate(portal, second, account);
  await portal.fillSignIn(stranger);
  await portal.at('/applications/new');
  await portal.hydrated();
  await expect(portal.page.getByLabel('Sender name')).toHaveValue('');
  await expect(portal.alert('You were signed out before this form arrived')).toHaveCount(0);
  expect(await portal.page.content()).not.toContain('TypedOnce');
});

test('each longer form is restored after signing in again', async ({
  portal,
  anotherBrowser,
}) => {
  const account = await portal.register();
  const { reference } = await portal.createApplication();
  const { page } = portal;
  const own = `/applications/${reference}`;
  const deposits = page.getByRole('checkbox', { name: 'Deposits' });
  const sender = portal.form('Request sender name').getByLabel('Sender name');
  const name = portal.form('Save name').getByLabel('Name', { exact: true });
  const forms = [
    {
      path: `${own}/sender`,
      button: 'Request sender name',
      type: () => sender.fill('TypedOnce'),
      isThere: () => expect(sender).toHaveValue('TypedOnce'),
    },
    {
      path: `${own}/settings`,
      button: 'Save mails',
      type: async () => {
        await page.getByLabel('Low balance').fill('12.50');
        await page.getByLabel('When a batch is done').selectOption('A mail for each batch');
      },
      isThere: async () => {
        await expect(page.getByLabel('Low balance')).toHaveValue('12.50');
        await expect(page.getByLabel('When a batch is done')).toHaveValue('mail');
      },
    },
    {
      path: '/account',
      button: 'Save notifications',
      type: () => deposits.uncheck(),
      isThere: () => expect(deposits).not.toBeChecked(),
    },
    {
      path: '/account',
      button: 'Save theme',
      type: () => page.getByLabel('Theme').selectOption('Dark'),
      isThere: () => expect(page.getByLabel('Theme')).toHaveValue('dark'),
    },
    {
      path: '/account',
      button: 'Save time zone',
      type: () => page.getByLabel('Time zone').selectOption('Europe/Madrid'),
      isThere: () => expect(page.getByLabel('Time zone')).toHaveValue('Europe/Madrid'),
    },
    {
      path: '/devices',
      button: 'Save name',
      type: () => name.fill('The office'),
      isThere: () => expect(name).toHaveValue('The office'),
    },
  ];
  const other = await anotherBrowser();
  for (const { path, button, type, isThere } of forms) {
    await portal.open(path);
    await type();
    await other.signIn(account);
    await signOutOthers(other, account);
    await portal.button(button).click();
    await portal.at(/^\/login\?/);
    await portal.hydrated();
    await portal.fillSignIn(account);
    await portal.at(path);
    await portal.hydrated();
    await expect(portal.alert('You were signed out before this form arrived')).toBeVisible();
    await isThere();
  }
});

test('a session warns before it ends, and can be extended', async ({
  portal,
  server,
  scripts,
  anotherBrowser,
}) => {
  await portal.open('/login');
  await expect(portal.page.getByText('after 30 minutes without use')).toBeVisible();
  if (!scripts) return;

  // The browser's clock is moved forward, and the server's answers are faked.
  const { page } = portal;
  const account = await portal.register();
  let end: { in_ms: number; idle: boolean } | null = { in_ms: 4 * 60_000, idle: true };
  await page.route(/\/fn\/session\b/, (route) => route.fulfill({ json: end }));
  await page.clock.install();
  await portal.open('/applications/new');
  const sender = page.getByLabel('Sender name');
  await sender.fill('TypedOnce');
  const notice = page.locator('.session-notice');
  await expect(notice).toHaveAttribute('aria-live', 'polite');
  await page.clock.fastForward('20:00');
  await expect(notice).toHaveText('');
  await page.clock.fastForward('06:00');
  await expect(notice).toContainText('You will be signed out in less than 5 minutes');
  await portal.button('Stay signed in').click();
  await expect(notice).toHaveText('');
  await expect(sender).toHaveValue('TypedOnce');

  // Nothing extends a session beyond 12 hours.
  end = { in_ms: 4 * 60_000, idle: false };
  await page.clock.fastForward('26:00');
  await expect(notice).toContainText('12 hours after you signed in');
  await expect(portal.button('Stay signed in')).toHaveCount(0);

  const other = await anotherBrowser();
  await other.signIn(account);
  await signOutOthers(other, account);
  end = null;
  await page.clock.fastForward('02:00');
  await expect(notice).toContainText('You are signed out.');
  const opened = page.context().waitForEvent('page');
  await portal.link('Sign in again in a new tab').click();
  const tab = new Portal(await opened, server, scripts);
  await tab.hydrated();
  await tab.fillSignIn(account);
  await tab.at('/applications');
  await tab.page.close();
  end = { in_ms: 29 * 60_000, idle: true };
  await page.evaluate(() => window.dispatchEvent(new Event('focus')));
  await expect(notice).toHaveText('');
  await expect(sender).toHaveValue('TypedOnce');
  await portal.button('Create application').click();
  await portal.readKeys();
});
