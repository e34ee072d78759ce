import { expect, test } from '../support/test.js';
import { Portal } from '../support/portal.js';

test('a wrong password replaces nothing', async ({ portal, server, anotherBrowser }) => {
  const customer = await portal.customer();
  const other = await anotherBrowser();
  await other.signIn(customer);

  await portal.confirmReplacement(customer.reference, 'live', 'not the password');
  await expect(portal.alert('The password is wrong.')).toBeVisible();
  expect(await portal.shownKeys()).toEqual([]);

  const sent = await server.send(customer.key, '58000001', 'Still the same key');
  expect(sent).toMatchObject({ status: 200, body: { code: 200 } });
  await other.open('/applications');
  await expect(other.heading('My Applications')).toBeVisible();
});

test('a key is replaced once by two tabs, and by going back', async ({
  portal,
  server,
  context,
  scripts,
}) => {
  const customer = await portal.customer();
  const second = new Portal(await context.newPage(), server, scripts);
  const confirmation = `/applications/${customer.reference}/keys?replace=live`;
  for (const tab of [portal, second]) {
    await tab.open(confirmation);
    await tab.form('Replace key').getByLabel('Password').fill(customer.password);
  }
  await portal.button('Replace key').click();
  const [key] = (await portal.newKeys(1)) as [string];
  await second.button('Replace key').click();
  await expect(second.alert('This key was replaced before')).toBeVisible();
  expect(await second.shownKeys()).toEqual([]);

  // Going back and forward replaces nothing either, and a reloaded page shows no key.
  await portal.page.goBack();
  await portal.page.goForward();
  await portal.reload();
  expect(await portal.shownKeys()).toEqual([]);
  const sent = await server.send(key, '58000001', 'With the key of the first tab');
  expect(sent).toMatchObject({ status: 200, body: { code: 200 } });

  // After a reload, which the page recommends, the new key can be replaced too.
  const next = await second.replaceKey(customer.reference, 'live', customer.password);
  expect(next).not.toBe(key);
});

test('Enter in a field never replaces the other key', async ({ portal, server }) => {
  const customer = await portal.customer();
  await portal.open(`/applications/${customer.reference}/keys`);
  // The page asks for the password only after a person has chosen a key.
  await expect(portal.main.getByLabel('Password')).toHaveCount(0);
  await portal.link('Replace the test key').click();
  const password = portal.form('Replace test key').getByLabel('Password');
  await expect(portal.button('Replace key')).toHaveCount(0);
  await password.fill(customer.password);
  await password.press('Enter');
  const [testKey] = (await portal.newKeys(1)) as [string];
  expect(testKey).toMatch(new RegExp(`^${customer.reference}ht_`));
  const sent = await server.send(customer.key, '58000001', 'With the same live key');
  expect(sent).toMatchObject({ status: 200, body: { code: 200 } });
});

test('replacing the test key leaves the live key as it is', async ({ portal, server }) => {
  const customer = await portal.customer();
  const testKey = await portal.replaceKey(customer.reference, 'test', customer.password);
  expect(testKey).toMatch(new RegExp(`^${customer.reference}ht_`));

  const old = await server.send(customer.testKey, '00000001', 'With the old test key');
  expect(old).toMatchObject({ status: 401, body: { code: 504 } });
  const fresh = await server.send(testKey, '00000001', 'With the new test key');
  expect(fresh).toMatchObject({ status: 200, body: { code: 200 } });
  const live = await server.send(customer.key, '58000001', 'With the live key');
  expect(live).toMatchObject({ status: 200, body: { code: 200 } });
});

test('the test key works while the application is Pending, on the test balance', async ({
  portal,
  server,
}) => {
  await portal.register();
  const { reference, testKey } = await portal.createApplication();
  const sent = await server.send(testKey, '00000002', 'To a handset that is off');
  expect(sent).toMatchObject({ status: 200, body: { code: 200, balance: 999.95 } });
  const report = await portal.settled(testKey, sent.body['transid']);
  expect(report).toMatchObject({ status: 'failed' });

  await portal.open('/reports');
  await expect(portal.row('00000002')).toContainText('failed');
  await expect(portal.row('00000002')).toContainText(/test/i);
  await portal.open(`/applications/${reference}`);
  await expect(portal.fact('Balance')).toContainText(/^0\.00 USD/);
});

test('the quick start has a line with the new test key', async ({ portal, server }) => {
  await portal.register();
  const { testKey } = await portal.createApplication();
  const line = await portal.main.locator('pre', { hasText: '/sms/send/' }).innerText();
  expect(line).toContain(`${server.url}/sms/send/${testKey}`);
  expect(line).toContain('number=00000001');
});
