import { expect, test } from '../support/test.js';
import { Portal, newAccount, unique } from '../support/portal.js';
import { Server } from '../support/server.js';

test('a signed-out person is led to the sign-in page and back', async ({ portal }) => {
  const account = await portal.register();
  await portal.button('Sign out').click();
  await portal.at('/');
  await expect(portal.link('Create account').first()).toBeVisible();

  await portal.page.goto('/applications');
  await portal.at('/login');
  await portal.hydrated();
  await portal.fillSignIn(account);
  await portal.at('/applications');
  await expect(portal.heading('My Applications')).toBeVisible();
});

test('after signing out, going back shows nothing', async ({ portal }) => {
  await portal.register();
  await portal.open('/applications');
  await portal.button('Sign out').click();
  await portal.at('/');
  await portal.page.goBack();
  await portal.at(/^\/login/);
  await expect(portal.heading('My Applications')).toHaveCount(0);
});

for (const path of ['/reports?status=failed', '/applications/new', '/devices', '/account']) {
  test(`signing in leads back to ${path}`, async ({ portal, anotherBrowser }) => {
    const account = await portal.register();
    const other = await anotherBrowser();
    await other.page.goto(path);
    await other.at(/^\/login\?/);
    await other.hydrated();
    await other.fillSignIn(account);
    await other.at(path);
  });
}

test('signing in leads to no other site', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  const others = ['//elsewhere.example/', 'https://elsewhere.example/', '/\\elsewhere.example'];
  for (const next of others) {
    const other = await anotherBrowser();
    await other.open(`/login?next=${encodeURIComponent(next)}`);
    await other.fillSignIn(account);
    await other.at('/applications');
  }
});

test('a wrong password and an unknown email get the same sentence', async ({ portal }) => {
  const account = await portal.register();
  await portal.button('Sign out').click();
  await portal.at('/');

  for (const email of [account.email, newAccount().email]) {
    await portal.open('/login');
    await portal.fillSignIn({ email, password: 'not the password' });
    await expect(portal.alert('Email or password is wrong.')).toBeVisible();
    const form = portal.form('Sign in');
    await expect(form.getByLabel('Email')).toHaveValue(email);
  }

  // After a refusal, the correct password works in the same form.
  await portal.fillSignIn(account);
  await portal.at('/applications');
});

test('registering an email that has an account is refused', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  const other = await anotherBrowser();
  await other.open('/register');
  const form = other.form('Create account');
  await form.getByLabel('Email').fill(account.email.toUpperCase());
  await form.getByLabel('Password').fill('another password');
  await other.button('Create account').click();
  await expect(other.alert('An account with this email exists already')).toBeVisible();
  await expect(form.getByLabel('Email')).toHaveValue(account.email.toUpperCase());
});

test('a password that is too short is refused, and the email stays', async ({ portal }) => {
  const { email } = newAccount();
  await portal.open('/register');
  const form = portal.form('Create account');
  await form.getByLabel('Email').fill(email);
  await form.getByLabel('Password').fill('too short');
  await portal.button('Create account').click();
  await expect(portal.alert('A password has 10 to 128 characters.')).toBeVisible();
  await expect(form.getByLabel('Email')).toHaveValue(email);
  // A password never appears in the page or in its address.
  expect(decodeURIComponent(portal.page.url())).not.toContain('too short');
  expect(await portal.page.content()).not.toContain('too short');
});

test('a password that is easily guessed is refused with the reason', async ({ portal }) => {
  const { email } = newAccount();
  for (const [password, why] of [
    ['qwertyuiop', 'follows the alphabet, the digits or the keyboard'],
    ['aaaaaaaaaa', 'repeats a few characters'],
    [email, 'made of the email'],
    ['heliograph1', "made of the service's name"],
    ['password123', 'one of those that are tried first'],
  ] as const) {
    await portal.open('/register');
    const form = portal.form('Create account');
    await form.getByLabel('Email').fill(email);
    await form.getByLabel('Password').fill(password);
    await portal.button('Create account').click();
    await expect(portal.alert(why)).toBeVisible();
  }
});

test('a typed password can be shown, and its strength is rated', async ({ portal, scripts }) => {
  await portal.open('/register');
  const field = portal.form('Create account').getByLabel('Password');
  await expect(field).toHaveCount(1);
  await expect(portal.button('Show password')).toHaveCount(scripts ? 1 : 0);
  if (!scripts) return;
  await field.fill('qwertyuiop');
  await expect(portal.main.getByText('This password follows')).toBeVisible();
  await field.fill('correct horse battery');
  await expect(portal.main.getByText('Strong:')).toBeVisible();
  await portal.button('Show password').click();
  await expect(field).toHaveAttribute('type', 'text');
  await portal.button('Hide password').click();
  await expect(field).toHaveAttribute('type', 'password');
});

test('changing the password signs out all other browsers', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  const other = await anotherBrowser();
  await other.signIn(account);
  const password = unique('another horse ');

  await portal.open('/account');
  const form = portal.form('Change password');
  await form.getByLabel('Current password').fill('not the password');
  await form.getByLabel('New password').fill(password);
  await portal.button('Change password').click();
  await expect(portal.alert('The password is wrong.')).toBeVisible();
  await other.open('/devices');
  await expect(other.heading('Devices')).toBeVisible();

  await form.getByLabel('Current password').fill(account.password);
  await form.getByLabel('New password').fill(password);
  await portal.button('Change password').click();
  await expect(portal.page.getByText('The password is changed')).toBeVisible();

  await other.page.goto('/devices');
  await other.at(/^\/login/);
  await other.hydrated();
  await other.fillSignIn(account);
  await expect(other.alert('Email or password is wrong.')).toBeVisible();
  await other.fillSignIn({ ...account, password });
  await other.at('/devices');
});

test('a page shows what was accepted or what was refused', async ({ portal, scripts }) => {
  const account = await portal.register();
  const password = unique('another horse ');
  const status = portal.main.getByRole('status').filter({ hasText: 'The password is changed' });
  const form = portal.form('Change password');
  const change = async (from: string, to: string) => {
    await form.getByLabel('Current password').fill(from);
    await form.getByLabel('New password').fill(to);
    await portal.button('Change password').click();
  };
  await portal.open('/account');
  await change(account.password, password);
  await expect(status).toBeVisible();
  if (scripts) await expect(status).toBeFocused();

  await change('not the password', account.password);
  const alert = portal.alert('The password is wrong.');
  await expect(alert).toBeVisible();
  await expect(alert).toBeInViewport();
  if (scripts) await expect(alert).toBeFocused();
  await expect(status).toHaveCount(0);

  await change(password, account.password);
  await expect(status).toBeVisible();
  await expect(alert).toHaveCount(0);
});

test('a reset link sets a new password once', async ({
  portal,
  server,
  anotherBrowser,
  watch,
}) => {
  watch.expectsEndedSessions();
  const account = await portal.register();
  const { link } = await server.staff('account', 'reset', account.email);
  server.keepsSecret(new URL(link).pathname.split('/').at(-1)!);
  const password = unique('a new horse ');

  const other = await anotherBrowser();
  await other.open(new URL(link).pathname);
  const form = other.form('Set new password');
  await form.getByLabel('New password').fill(password);
  await other.button('Set new password').click();
  await other.on('/login');
  await expect(other.page.getByText('Your password is changed.')).toBeVisible();
  await other.hydrated();
  await other.fillSignIn({ ...account, password });
  await other.at('/applications');

  // Every browser was signed out, and the link doesn't work again.
  await portal.page.goto('/applications');
  await portal.at('/login');
  await portal.open(new URL(link).pathname);
  await expect(portal.heading("This link doesn't work")).toBeVisible();
  await expect(portal.button('Set new password')).toHaveCount(0);
  await expect(portal.link('Ask for a new link')).toBeVisible();
});

test('requesting a reset link does not reveal whether an account exists', async ({ portal }) => {
  const account = await portal.register();
  for (const email of [account.email, newAccount().email]) {
    await portal.open('/forgot');
    await portal.form('Send reset link').getByLabel('Email').fill(email);
    await portal.button('Send reset link').click();
    await expect(portal.page.getByText('If there is an account with this email')).toBeVisible();
  }
});

test('too many wrong passwords are answered with the time to wait', async ({
  browser,
  scripts,
}) => {
  const server = await Server.start({ HELIOGRAPH_SIGN_IN_FAILURES_MAX: '2' });
  const context = await browser.newContext({ baseURL: server.url, javaScriptEnabled: scripts });
  const portal = new Portal(await context.newPage(), server, scripts);
  const account = await portal.register();
  await portal.button('Sign out').click();
  await portal.at('/');
  await portal.open('/login');
  for (let failures = 0; failures < 2; failures += 1) {
    await portal.fillSignIn({ ...account, password: 'not the password' });
    await expect(portal.alert('Email or password is wrong.')).toBeVisible();
    await portal.open('/login');
  }
  await portal.fillSignIn(account);
  await expect(portal.alert('Too many attempts. Try again in 15 minutes.')).toBeVisible();
  await context.close();
  await server.stop();
});

test('a theme is kept on the account', async ({ portal, anotherBrowser, watch, browserName }) => {
  watch.expects(/405/);
  const account = await portal.register();
  await portal.open('/account');
  await portal.page.getByLabel('Theme').selectOption('Dark');
  await portal.button('Save theme').click();
  await expect(portal.page.getByText('The theme is saved.')).toBeVisible();
  const isDark = async (browser: Portal) => {
    await expect(browser.page.locator('html')).toHaveCSS('color-scheme', 'dark');
  };
  await isDark(portal);
  await expect(portal.page.getByLabel('Theme')).toHaveValue('dark');
  await portal.open('/docs');
  await isDark(portal);
  const other = await anotherBrowser();
  await other.signIn(account);
  await isDark(other);
  // Error pages use the theme too, but the system's forced colours override it.
  await other.page.goto('/fn/sign-out');
  await expect(other.heading("This address doesn't support the request")).toBeVisible();
  await isDark(other);
  // Playwright can't force colours in Firefox.
  if (browserName === 'firefox') return;
  await other.page.emulateMedia({ forcedColors: 'active' });
  await expect(other.page.locator('html')).toHaveCSS('color-scheme', 'light dark');
});

test('an account chooses its notifications', async ({ portal }) => {
  await portal.register();
  await portal.open('/account');
  const deposits = portal.page.getByRole('checkbox', { name: 'Deposits' });
  const balances = portal.page.getByRole('checkbox', { name: /^Low balances/ });
  await expect(deposits).toBeChecked();
  await deposits.uncheck();
  await portal.button('Save notifications').click();
  await expect(portal.page.getByText('The notifications are saved.')).toBeVisible();
  await expect(deposits).not.toBeChecked();
  await portal.open('/account');
  await expect(deposits).not.toBeChecked();
  await expect(balances).toBeChecked();
});

test('without a mail server the email is changed by support', async ({ portal }) => {
  await portal.register();
  await portal.open('/account');
  await expect(portal.page.getByText('Contact support to change your email')).toBeVisible();
  await expect(portal.button('Change email')).toHaveCount(0);
});

test('an account downloads its data and is closed for good', async ({
  portal,
  anotherBrowser,
  watch,
}) => {
  watch.expectsEndedSessions();
  const customer = await portal.customer();
  const other = await anotherBrowser();
  await other.signIn(customer);

  await portal.open('/account');
  const downloading = portal.page.waitForEvent('download');
  await portal.link('Download your data').click();
  expect((await downloading).suggestedFilename()).toBe('heliograph-account.json');

  await portal.link('Close your account').click();
  await portal.at('/account/close');
  const form = portal.form('Close account');
  await form.getByLabel('References').fill('000000');
  await form.getByLabel('Password').fill(customer.password);
  await portal.button('Close account').click();
  await expect(portal.alert('Type the reference of each')).toBeVisible();
  await expect(form.getByLabel('References')).toHaveValue('000000');

  await form.getByLabel('References').fill(customer.reference);
  await form.getByLabel('Password').fill(customer.password);
  await portal.button('Close account').click();
  await portal.on('/login');
  await expect(portal.page.getByText('Your account is closed.')).toBeVisible();
  await portal.hydrated();
  await portal.fillSignIn(customer);
  await expect(portal.alert('This account was closed by its owner')).toBeVisible();
  await other.page.goto('/applications');
  await other.at('/login');
});

test('details on receipts are shown as they were saved', async ({ portal }) => {
  await portal.register();
  await portal.open('/account/billing');
  const address = portal.page.getByLabel('Address');
  await address.fill('1 Main Road\nMaseru');
  await portal.button('Save details').click();
  await expect(portal.main.getByText('The details are saved.')).toBeVisible();
  await expect(address).toHaveValue('1 Main Road\nMaseru');
});
