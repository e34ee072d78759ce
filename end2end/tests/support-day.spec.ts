import { randomInt } from 'node:crypto';
import { expect, test } from '../support/test.js';
import { newAccount, unique } from '../support/portal.js';

/** Returns tomorrow's date in UTC. */
function tomorrow(): string {
  return new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
}

test("support's day, and what the customer sees of it", async ({
  portal,
  anotherBrowser,
  server,
}) => {
  // The test has many steps, on pages of staff and of the customer.
  test.setTimeout(180_000);
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  const { reference, key } = await customer.createApplication(unique('S').slice(0, 9));
  await customer.open(`/applications/${reference}`);
  await customer.button('Request activation').click();
  await expect(customer.main.getByText('You requested activation')).toBeVisible();

  await test.step('sign in with a second factor', async () => {
    const account = newAccount();
    const { app } = await portal.staff(account);
    await portal.open('/devices');
    await portal.button('Sign out').click();
    await portal.at('/');
    await portal.signInByCode(account, app);
    await portal.at('/support');
    await portal.hydrated();
  });

  await test.step('approve, and reject a sender name', async () => {
    await portal.link('Activation requests').click();
    await portal.at('/support/applications');
    await portal.hydrated();
    await portal.row(reference).getByRole('button', { name: /^Approve / }).click();
    await expect(portal.row(reference)).toHaveCount(0);
    await portal.open('/support/senders');
    const asked = portal.row(reference);
    await asked.getByRole('button', { name: /^Reject / }).click();
    await portal.confirms('Reject', 'Please ask for the name of your company.');
    await portal.on('/support/senders');
    await expect(portal.row(reference)).toHaveCount(0);
    await customer.open(`/applications/${reference}`);
    await expect(customer.fact('Status')).toHaveText('Active');
    await expect(customer.main).toContainText('Please ask for the name of your company.');
    await customer.link('Ask for another one').click();
    await customer.at(`/applications/${reference}/sender`);
    await customer.page.getByLabel('Sender name').fill(unique('S').slice(0, 9));
    await customer.button('Request sender name').click();
    await expect(customer.main).toContainText('a new request replaces it');
    await portal.open('/support/senders');
    await portal.row(reference).getByRole('button', { name: /^Accept / }).click();
    await expect(portal.row(reference)).toHaveCount(0);
  });

  const late = unique('late-');
  await test.step('match money', async () => {
    await server.staff('deposit', 'add', `rent ${reference[0]}`, '3', '--bank-id', late);
    await portal.open('/support/deposits');
    const row = portal.row(late);
    await row.getByRole('textbox').fill(reference);
    await row.getByRole('button', { name: /^Assign (?!to)/ }).click();
    await portal.at(/^\/support\/deposits\/assign\?/);
    await portal.hydrated();
    await expect(portal.fact('Account')).toHaveText(email);
    await portal.button('Assign').click();
    await expect(portal.main.getByText(`(${late}) is assigned to ${reference}.`)).toBeVisible();
    await customer.open(`/applications/${reference}`);
    await expect(customer.fact('Balance')).toContainText('3');
  });

  await test.step('import a statement', async () => {
    const [first, second] = [unique('day-'), unique('day-')];
    const lines = [`${first};${reference};7,50`, `${second};nobody;1,00`];
    await portal.importStatement(lines, first);
    await customer.open(`/applications/${reference}`);
    await expect(customer.fact('Balance')).toContainText('10.50');
    await portal.open('/support/deposits');
    await expect(portal.row(second)).toHaveCount(1);
  });

  await test.step('find a message and its cost', async () => {
    const number = `57${randomInt(100_000, 1_000_000)}`;
    const sent = await server.send(key, number, 'Where is it');
    const transid: string = sent.body['transid'];
    await customer.settled(key, transid);
    await portal.open('/support/search');
    await portal.page.getByLabel('Search', { exact: true }).fill(number);
    await portal.button('Search').click();
    await portal.at(/^\/support\/search\?q=/);
    await portal.hydrated();
    await portal.link(transid).click();
    await portal.at(`/support/messages/${transid}`);
    await portal.hydrated();
    await expect(portal.main).toContainText('0.05');
    await expect(portal.main).toContainText('delivered');
    await expect(portal.main).not.toContainText('Where is it');
  });

  await test.step('change a price from tomorrow on', async () => {
    const prefix = `998${randomInt(100_000, 1_000_000)}`;
    await portal.open('/support/prices');
    await portal.page.getByLabel('Prefix', { exact: true }).fill(prefix);
    await portal.page.getByLabel('Price', { exact: true }).fill('0.33');
    await portal.page.getByLabel('When').last().selectOption('tomorrow');
    await portal.button('Set price').click();
    await portal.confirms('Set price');
    await portal.on('/support/prices');
    const later = portal.page.getByRole('region', { name: 'Prices that are set for later' });
    await expect(later).toContainText(prefix);
    const list = await server.api(`prices/${key}`, { number: `${prefix}1234` });
    expect(list.body['price']).toEqual({ per_page: 0.25, rule: 'international_not_8_digits' });
    const coming = list.body['prices'].find(
      (price: { prefix: string | null }) => price.prefix === prefix,
    );
    expect(coming).toMatchObject({ per_page: 0.33, from: `${tomorrow()}T00:00:00.000Z` });
  });

  await test.step('suspend, and send the reason by mail', async () => {
    await portal.open('/support/applications?list=all');
    const row = portal.row(reference);
    await row.getByRole('button', { name: /^Suspend / }).click();
    await portal.confirms('Suspend', 'A payment was disputed.');
    await expect(row).toContainText('Suspended');
    await customer.open(`/applications/${reference}`);
    await expect(customer.main).toContainText('A payment was disputed.');
    expect((await server.send(key, '57000001', 'No')).body['code']).toBe(503);
    await portal.open('/support/mail');
    for (const subject of ['Approved', 'Sender name rejected', 'Suspended']) {
      await expect(portal.row(`${subject}: application ${reference}`)).toHaveCount(1);
    }
  });

  await test.step('find all of it in the audit log', async () => {
    await portal.open(`/support/audit?subject=${reference}`);
    for (const action of ['Approved the app', 'Suspended the app', 'Rejected a sender name']) {
      await expect(portal.row(action)).not.toHaveCount(0);
    }
  });
  expect((await server.run(['check'])).code).toBe(0);
});
