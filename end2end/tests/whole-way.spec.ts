import { expect, test } from '../support/test.js';

test('from registration to a delivered message and a replaced key', async ({
  portal,
  server,
  anotherBrowser,
}) => {
  const { page } = portal;
  const account = await portal.register();
  await expect(portal.heading('My Applications')).toBeVisible();

  await portal.link('New application').click();
  await portal.at('/applications/new');
  await portal.fillApplication('', 'SMS');
  await portal.button('Create application').click();
  const { reference, key, testKey } = await portal.readKeys();
  await portal.at(`/applications/${reference}`);

  await test.step('the keys are shown once', async () => {
    await portal.reload();
    await expect(portal.fact('Reference')).toHaveText(reference);
    expect(await portal.shownKeys()).toEqual([]);
    expect(await page.content()).not.toContain(key.slice(9));
    expect(await page.content()).not.toContain(testKey.slice(9));
  });

  await test.step('the application is Pending, on the pages and for the API', async () => {
    await expect(portal.fact('Status')).toHaveText('Pending');
    await portal.open('/applications');
    await expect(portal.row(reference)).toContainText('Pending');
    const answer = await server.send(key, '58000001', 'Too early');
    expect(answer).toMatchObject({ status: 403, body: { code: 502, reason: 'api_pending' } });
  });

  await test.step('the customer asks for activation, and support approves', async () => {
    await portal.open(`/applications/${reference}`);
    await portal.button('Request activation').click();
    await expect(portal.main).toContainText('You requested activation');
    await expect(portal.button('Request activation')).toBeHidden();
    const shown = await server.staff('application', 'show', reference);
    expect(shown).toMatchObject({ status: 'Pending', email: account.email });
    expect(shown.activation_requested_at).not.toBeNull();

    await server.staff('application', 'approve', reference);
    await portal.reload();
    await expect(portal.fact('Status')).toHaveText('Active');
  });

  await test.step('without a balance nothing is sent; then a deposit arrives', async () => {
    const answer = await server.send(key, '58000001', 'Too poor');
    const refusal = { code: 501, reason: 'insufficient_funds' };
    expect(answer).toMatchObject({ status: 402, body: refusal });

    await portal.deposit({ reference, key, testKey }, '10');
    await portal.reload();
    await expect(portal.fact('Balance')).toContainText('10.00 USD');
  });

  const number = '58123456';
  const text = 'Votre code est 4711 — à bientôt';
  const transid = await test.step('a message is sent by the API and delivered', async () => {
    const answer = await server.send(key, number, text);
    expect(answer).toMatchObject({
      status: 200,
      body: { code: 200, balance: 9.95, pages: 1, cost: 0.05, currency: 'USD' },
    });
    const { transid } = answer.body as { transid: string };
    const report = await portal.settled(key, transid);
    const delivered = { transid, number, message: text, status: 'delivered', cost: 0.05 };
    expect(report).toMatchObject(delivered);
    return transid;
  });

  await test.step('the pages show the message and the balance', async () => {
    await portal.open('/reports');
    const row = portal.row(number);
    await expect(row).toHaveCount(1);
    await expect(row).toContainText('delivered');

    await portal.open('/applications');
    await expect(portal.row(reference)).toContainText('9.95');
    await expect(portal.row(reference)).toContainText('Active');

    await portal.open(`/applications/${reference}`);
    await expect(portal.fact('Balance')).toContainText('9.95 USD');
    await portal.link('Statement').click();
    await portal.at(`/applications/${reference}/statement`);
    await expect(portal.row('Deposit')).toContainText('+10.00');
    await expect(portal.row('Charge')).toContainText('−0.05');
    await expect(portal.row('Charge')).toContainText(transid);
  });

  await test.step('a replaced key stops working, and other browsers are signed out', async () => {
    const other = await anotherBrowser();
    await other.signIn(account);

    const newKey = await portal.replaceKey(reference, 'live', account.password);
    expect(newKey).toMatch(new RegExp(`^${reference}hk_`));
    expect(newKey).not.toBe(key);

    const refused = await server.send(key, number, 'With the old key');
    expect(refused).toMatchObject({ status: 401, body: { code: 504, reason: 'api_invalid' } });
    const sent = await server.send(newKey, number, 'With the new key');
    expect(sent).toMatchObject({ status: 200, body: { code: 200, balance: 9.9 } });
    await portal.settled(newKey, sent.body['transid']);

    await other.page.goto('/applications');
    await other.at('/login');
    await expect(other.button('Sign in')).toBeVisible();

    await portal.reload();
    expect(await portal.shownKeys()).toEqual([]);
    await portal.open('/applications');
    await expect(portal.heading('My Applications')).toBeVisible();
    await expect(portal.row(reference)).toContainText('9.9');
  });
});
