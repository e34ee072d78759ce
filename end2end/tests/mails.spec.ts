import { type Mail, type MailServer, expect, test } from '../support/mail.js';
import { type Account, type Portal, unique } from '../support/portal.js';

/** The user agent of another browser, which makes it a new device. */
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const FACTOR_CHANGED = 'The second factor of your account changed';
const CODE_USED = 'A recovery code of your account was used';

/** Registers an account, and confirms its email with the link in the mail. */
async function confirmed(portal: Portal, mails: MailServer): Promise<Account> {
  const account = await portal.register();
  const mail = await mails.mail(account.email, 'Confirm your email');
  await portal.open(secretPath(portal, mail, 'confirm'));
  await portal.button('Confirm').click();
  await expect(portal.page.getByText('Your email is confirmed')).toBeVisible();
  return account;
}

/** Returns the path of the only link with a token in a mail. */
function secretPath(portal: Portal, mail: Mail, page: string): string {
  const [link, home, ...more] = mail.links;
  expect([home, more]).toEqual([portal.server.url, []]);
  const path = link!.replace(portal.server.url, '');
  expect(path).toMatch(new RegExp(`^/${page}/[0-9a-f]{64}$`));
  portal.server.keepsSecret(path.split('/').at(-1)!);
  return path;
}

/** Checks that a mail links only to one page and the home page of the portal. */
function leadsTo(portal: Portal, mail: Mail, path: string): void {
  expect(mail.links).toEqual([`${portal.server.url}${path}`, portal.server.url]);
}

test('a lost phone: recovery code, new factor, and a mail about each', async ({
  portal,
  mails,
  anotherBrowser,
}) => {
  const account = await confirmed(portal, mails);
  await portal.open('/account/two-factor');
  const old = await portal.setUpTwoFactor();
  const first = await mails.mail(account.email, FACTOR_CHANGED, 'app was set up');
  leadsTo(portal, first, '/account/two-factor');

  const other = await anotherBrowser({ userAgent: FIREFOX });
  await other.open('/login');
  await other.fillSignIn(account);
  await other.at(/^\/login\/code/);
  await other.hydrated();
  await other.link('Recovery code').click();
  await other.page.getByLabel('Recovery code').fill(old.codes[0]!);
  await other.button('Confirm').click();
  await other.at('/applications');
  const used = await mails.mail(account.email, CODE_USED, 'A recovery code was used');
  leadsTo(portal, used, '/account/two-factor');
  const device = await mails.mail(account.email, 'New sign-in to your account');
  expect(device.body).toContain('Firefox on Linux');
  expect(device.body).toContain('127.0.0.1');
  leadsTo(portal, device, '/devices');

  await other.open('/account/two-factor');
  await other.link('Set up another app').click();
  await other.at('/account/two-factor?replace=1');
  const { app, codes } = await other.setUpTwoFactor();
  const changes = () => mails.to(account.email).filter((mail) => mail.subject === FACTOR_CHANGED);
  await expect.poll(() => changes().length, { message: 'mails about the factor' }).toBe(2);
  expect(changes()[1]!.body).toContain('app was set up');

  // The first browser is signed out, and only a code of the new app is accepted.
  await portal.page.goto('/applications');
  await portal.at('/login');
  await portal.hydrated();
  await portal.fillSignIn(account);
  await portal.at(/^\/login\/code/);
  await portal.hydrated();
  await portal.page.getByLabel('Code', { exact: true }).fill(await old.app.code());
  await portal.button('Confirm').click();
  await expect(portal.alert('The code is wrong')).toBeVisible();
  await portal.page.getByLabel('Code', { exact: true }).fill(await app.code());
  await portal.button('Confirm').click();
  await portal.at('/applications');

  const secrets = [account.password, old.app.secret, app.secret, ...old.codes, ...codes];
  for (const mail of mails.to(account.email)) {
    for (const secret of secrets) expect(mail.body).not.toContain(secret);
  }
});

test('a password is reset by mail', async ({ portal, mails, anotherBrowser }) => {
  const account = await confirmed(portal, mails);
  const other = await anotherBrowser();
  await other.open('/login');
  await other.link('Forgot the password?').click();
  await other.at('/forgot');
  await other.hydrated();
  await other.form('Send reset link').getByLabel('Email').fill(account.email);
  await other.button('Send reset link').click();
  await expect(other.page.getByText('If there is an account with this email')).toBeVisible();

  const mail = await mails.mail(account.email, 'Reset your password');
  const path = secretPath(other, mail, 'reset');
  const password = unique('by mail a horse ');
  portal.server.keepsSecret(password);
  await other.open(path);
  await other.form('Set new password').getByLabel('New password').fill(password);
  await other.button('Set new password').click();
  await other.on('/login');
  await expect(other.page.getByText('Your password is changed.')).toBeVisible();
  await other.hydrated();
  await other.fillSignIn({ ...account, password });
  await other.at('/applications');

  // All browsers are signed out, and the old password no longer works.
  await portal.page.goto('/applications');
  await portal.at('/login');
  await portal.hydrated();
  await portal.fillSignIn(account);
  await expect(portal.alert('Email or password is wrong.')).toBeVisible();

  const changed = await mails.mail(account.email, 'Your password was changed');
  leadsTo(portal, changed, '/forgot');
  const token = path.split('/').at(-1)!;
  for (const { body } of mails.to(account.email).filter((other) => other !== mail)) {
    for (const secret of [token, password, account.password]) expect(body).not.toContain(secret);
  }
  // The link works once.
  await portal.open(path);
  await expect(portal.heading("This link doesn't work")).toBeVisible();
  await expect(portal.button('Set new password')).toHaveCount(0);
  await expect(portal.link('Ask for a new link')).toBeVisible();
});
