import { expect, test } from '../support/test.js';

test('a customer sets up two-factor and signs in by code', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  await portal.open('/account');
  await portal.link('Set up two-factor').click();
  await portal.at('/account/two-factor');
  await portal.hydrated();
  await expect(portal.page.getByRole('img', { name: /QR code/ })).toBeVisible();
  await portal.page.getByLabel('Code', { exact: true }).fill('000000');
  await portal.button('Confirm').click();
  await expect(portal.alert('The code is wrong')).toBeVisible();
  const { app } = await portal.setUpTwoFactor();
  await portal.reload();
  await expect(portal.main.locator('.once code')).toHaveCount(0);
  await expect(portal.fact('Recovery codes left')).toHaveText('10');

  const other = await anotherBrowser();
  await other.open('/login');
  await other.fillSignIn(account);
  await other.at(/^\/login\/code/);
  await other.page.goto('/applications');
  await other.at('/login');
  await other.signInByCode(account, app);
});

test('a lost phone: a recovery code, then another app', async ({ portal, anotherBrowser }) => {
  const account = await portal.register();
  await portal.open('/account/two-factor');
  const { codes } = await portal.setUpTwoFactor();

  const other = await anotherBrowser();
  const byRecovery = async (code: string) => {
    await other.open('/login');
    await other.fillSignIn(account);
    await other.at(/^\/login\/code/);
    await other.hydrated();
    await other.link('Recovery code').click();
    await other.page.getByLabel('Recovery code').fill(code);
    await other.button('Confirm').click();
  };
  await byRecovery(codes[0]!);
  await other.at('/applications');
  await expect(other.main).toContainText('You used a recovery code: 9 left.');
  await expect(other.link('Set up your new phone now')).toBeVisible();
  await other.open('/account/two-factor');
  await expect(other.fact('Recovery codes left')).toHaveText('9');
  await other.link('Set up another app').click();
  await other.at('/account/two-factor?replace=1');
  const { app } = await other.setUpTwoFactor();
  await other.link('I have saved them').click();
  await other.at('/account/two-factor');
  await expect(other.main.locator('.once code')).toHaveCount(0);

  await other.button('Sign out').click();
  await other.at('/');
  await byRecovery(codes[0]!);
  await expect(other.alert('The recovery code is wrong')).toBeVisible();
  await other.signInByCode(account, app);
});

test('staff without a second factor can only set one up', async ({ portal, server, watch }) => {
  watch.expectsEndedSessions();
  const account = await portal.register();
  await server.staff('account', 'promote', account.email);
  await portal.open('/login');
  await portal.fillSignIn(account);
  await portal.at('/account/two-factor');
  await portal.hydrated();
  await expect(portal.link('Reports')).toHaveCount(0);
  await portal.page.goto('/support');
  await portal.at('/account/two-factor');
  await portal.setUpTwoFactor();
  await portal.open('/support');
  await expect(portal.heading('Support')).toBeVisible();
});
