import { expect, test } from '../support/test.js';

/** The button of each device has a name of its own. */
const SIGN_OUT = /^Sign out this device/;

test('signing out one device leaves the others signed in', async ({
  portal,
  anotherBrowser,
  watch,
}) => {
  watch.expectsEndedSessions();
  const account = await portal.register();
  const [second, third] = [await anotherBrowser(), await anotherBrowser()];
  await second.signIn(account);

  await portal.open('/devices');
  const rows = portal.main
    .getByRole('row')
    .filter({ has: portal.page.getByRole('button', { name: SIGN_OUT }) });
  await expect(rows).toHaveCount(2);
  await expect(rows.filter({ hasText: /This device/ })).toHaveCount(1);

  await third.signIn(account);
  await portal.reload();
  await expect(rows).toHaveCount(3);

  // The order isn't fixed, so this signs out either of the two others.
  const others = rows.filter({ hasNotText: /This device/ });
  await others.first().getByRole('button', { name: 'Sign out this device' }).click();
  await expect(rows).toHaveCount(2);

  const stillIn = [];
  for (const browser of [portal, second, third]) {
    await browser.page.goto('/devices');
    await browser.at(/^\/(devices|login)/);
    stillIn.push(new URL(browser.page.url()).pathname === '/devices');
  }
  expect(stillIn[0]).toBe(true);
  expect(stillIn.slice(1).toSorted()).toEqual([false, true]);
});

test('all other devices are signed out', async ({ portal, anotherBrowser, watch }) => {
  watch.expectsEndedSessions();
  const account = await portal.register();
  const other = await anotherBrowser();
  await other.signIn(account);

  await portal.open('/devices');
  const form = portal.form('Sign out all other devices');
  await form.getByLabel('Password').fill('not the password');
  await portal.button('Sign out all other devices').click();
  await expect(portal.alert('The password is wrong.')).toBeVisible();
  await form.getByLabel('Password').fill(account.password);
  await portal.button('Sign out all other devices').click();
  await expect(portal.page.getByRole('button', { name: SIGN_OUT })).toHaveCount(1);
  await expect(portal.main.getByText('All other devices are signed out.')).toBeVisible();
  const events = portal.page.getByRole('region', { name: 'Security events' });
  await expect(events.getByText('All other devices signed out')).toBeVisible();

  await other.page.goto('/applications');
  await other.at('/login');
  await portal.open('/applications');
  await expect(portal.heading('My Applications')).toBeVisible();
});

test('signing out this device leads to the sign-in page', async ({ portal }) => {
  await portal.register();
  await portal.open('/devices');
  await portal.page.getByRole('button', { name: SIGN_OUT }).click();
  await portal.at(/^\/login/);
});

test('an open page notices that its session has ended', async ({
  portal,
  anotherBrowser,
  watch,
}) => {
  watch.expectsEndedSessions();
  const account = await portal.register();
  const other = await anotherBrowser();
  await other.signIn(account);
  await portal.open('/devices');
  const form = portal.form('Sign out all other devices');
  await form.getByLabel('Password').fill(account.password);
  await portal.button('Sign out all other devices').click();
  await expect(portal.page.getByRole('button', { name: SIGN_OUT })).toHaveCount(1);

  // Follow a link on the page that is still open.
  await other.link('Reports').click();
  await other.at('/login?next=%2Freports');
  await other.hydrated();
  await other.fillSignIn(account);
  await other.at('/reports');
});

test('a device keeps its name', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  await portal.open('/devices');
  const form = portal.form('Save name');
  await form.getByLabel('Name', { exact: true }).fill('The office');
  await portal.button('Save name').click();
  await expect(portal.page.getByText('The name is saved.')).toBeVisible();
  await expect(portal.row('The office')).toHaveCount(1);

  await form.getByLabel('Name', { exact: true }).fill('x'.repeat(61));
  await portal.button('Save name').click();
  await expect(portal.alert("A device's name has at most 60 characters")).toBeVisible();
  await expect(form.getByLabel('Name', { exact: true })).toHaveValue('x'.repeat(61));
  await expect(portal.page.getByText('The name is saved.')).toHaveCount(0);

  // The name is kept after the next sign-in.
  const other = await anotherBrowser();
  await other.signIn(account);
  await other.open('/devices');
  await expect(other.row('The office').first()).toBeVisible();
});
