import { expect, test } from '../support/test.js';

test('a wrong password replaces nothing', async ({ portal, server, anotherBrowser }) => {
  const customer = await portal.customer();
  const other = await anotherBrowser();
  await other.signIn(customer);

  await portal.open(`/applications/${customer.reference}`);
  await portal.form('Replace key').getByLabel('Password').fill('not the password');
  await portal.button('Replace key').click();
  await expect(portal.alert('The password is wrong.')).toBeVisible();
  expect(await portal.shownKeys()).toEqual([]);

  const sent = await server.send(customer.key, '58000001', 'Still the same key');
  expect(sent).toMatchObject({ status: 200, body: { code: 200 } });
  await other.open('/applications');
  await expect(other.heading('My Applications')).toBeVisible();
});

test('replacing the test key leaves the live key as it is', async ({ portal, server }) => {
  const customer = await portal.customer();
  await portal.open(`/applications/${customer.reference}`);
  await portal.form('Replace test key').getByLabel('Password').fill(customer.password);
  await portal.button('Replace test key').click();
  const [testKey] = (await portal.newKeys(1)) as [string];
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
  await expect(portal.fact('Balance')).toContainText(/^0 USD/);
});

test('the quick start has a line with the new test key', async ({ portal, server }) => {
  await portal.register();
  const { testKey } = await portal.createApplication();
  const line = await portal.main.locator('pre', { hasText: '/sms/send/' }).innerText();
  expect(line).toContain(`${server.url}/sms/send/${testKey}`);
  expect(line).toContain('number=00000001');
});
