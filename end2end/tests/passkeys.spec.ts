import { Server } from '../support/server.js';
import { type Page, test as base, expect } from '../support/test.js';

/** Browsers make passkeys only for host names, and not for addresses such as 127.0.0.1. */
const test = base.extend<object, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = await Server.start({}, 'localhost');
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

/** Adds a virtual device that stores passkeys and verifies its owner. */
async function addAuthenticator(page: Page): Promise<void> {
  const browser = await page.context().newCDPSession(page);
  await browser.send('WebAuthn.enable');
  await browser.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

test('a passkey is added, used to sign in and for step-up, and removed', async ({
  portal,
  scripts,
  browserName,
}) => {
  test.skip(!scripts, 'passkeys need JavaScript');
  test.skip(browserName !== 'chromium', 'only Chromium has a virtual device');
  const { page } = portal;
  await addAuthenticator(page);
  const account = await portal.register();
  await portal.open('/account/two-factor');
  await portal.setUpTwoFactor();
  await portal.reload();

  await portal.form('Add a passkey').getByLabel('Name').fill('Phone');
  await portal.button('Add a passkey').click();
  await expect(portal.row('Phone')).toContainText('never');
  // The device already has a passkey for the account.
  await portal.form('Add a passkey').getByLabel('Name').fill('Phone again');
  await portal.button('Add a passkey').click();
  await expect(portal.alert('Your browser didn\'t create a passkey')).toBeVisible();

  await portal.button('Sign out').click();
  await portal.at('/');
  await portal.open('/login');
  await portal.fillSignIn(account);
  await portal.at(/^\/login\/code\?passkey=1/);
  await portal.hydrated();
  await portal.button('Use a passkey').click();
  await portal.at('/applications');

  await portal.open('/account/two-factor');
  await expect(portal.row('Phone')).not.toContainText('never');
  // Step-up authentication is valid for ten minutes. The first answer is faked as if it had expired.
  let stepUps = 0;
  await page.route('**/fn/remove-passkey', async (route) => {
    const form = new URLSearchParams(route.request().postData() ?? '');
    if (form.get('credential')?.startsWith('{')) {
      stepUps += 1;
      await route.continue();
      return;
    }
    const typed = [['passkey', form.get('passkey')]];
    const body = JSON.stringify({ cause: { Refused: 'CodeOrPasskeyNeeded' }, typed });
    await route.fulfill({ status: 299, contentType: 'application/json', body });
  });
  await portal.button('Remove').click();
  await expect(portal.alert('Use a passkey, or enter a code')).toBeVisible();
  await portal.button('Use a passkey').click();
  await expect(portal.row('Phone')).toHaveCount(0);
  expect(stepUps, 'step-ups by passkey').toBe(1);

  await portal.open('/devices');
  for (const event of ['Passkey added', 'Passkey used', 'Passkey removed']) {
    await expect(portal.row(event)).toHaveCount(1);
  }
});

test('without scripts no passkey is offered', async ({ portal, scripts }) => {
  test.skip(scripts, 'passkeys need JavaScript');
  await portal.register();
  await portal.open('/account/two-factor');
  await portal.setUpTwoFactor();
  await portal.reload();
  await expect(portal.link('Make new recovery codes')).toBeVisible();
  await expect(portal.main.getByText('passkey')).toHaveCount(0);
});
