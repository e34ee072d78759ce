import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

test('staff decide about applications and sender names, and the customer sees it', async ({
  portal,
  anotherBrowser,
}) => {
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  const sender = unique('B4NK').slice(0, 9);
  const { reference } = await customer.createApplication(sender);
  await customer.open(`/applications/${reference}`);
  await customer.button('Request activation').click();
  await expect(customer.main.getByText('You requested activation')).toBeVisible();

  await portal.staff();
  await portal.open('/support');
  const waiting = portal.page.getByRole('region', { name: 'Pending work' });
  await expect(waiting).toContainText('Activation requests');
  await portal.link('Activation requests').click();
  await portal.at('/support/applications');
  await portal.hydrated();
  await portal.row(reference).getByRole('button', { name: /^Approve / }).click();
  await expect(portal.row(reference)).toHaveCount(0);

  await portal.open('/support/senders');
  const asked = portal.row(reference);
  await expect(asked).toContainText(email);
  await expect(asked).toContainText('Reserved word: bank');
  await asked.getByRole('button', { name: /^Reject / }).click();
  await portal.confirms('Reject', 'The name belongs to somebody else.');
  await portal.on('/support/senders');
  await expect(portal.main.getByText(/^The sender name .+ is rejected\./)).toBeVisible();
  await expect(portal.row(reference)).toHaveCount(0);

  await customer.open(`/applications/${reference}`);
  await expect(customer.fact('Status')).toHaveText('Active');
  const readiness = customer.page.getByRole('region', { name: 'Can this application send now?' });
  await expect(readiness).toContainText('The name belongs to somebody else.');

  await portal.open('/support/applications?list=all');
  const row = portal.row(reference);
  await row.getByRole('button', { name: /^Suspend / }).click();
  await portal.at(/^\/support\/confirm\?/);
  await expect(portal.fact('Account')).toHaveText(email);
  await portal.confirms('Suspend', 'A payment was disputed.');
  await expect(portal.main.getByText(`Application ${reference} is suspended.`)).toBeVisible();
  await expect(row.getByRole('button', { name: /^Reinstate / })).toBeVisible();
  await expect(row).toContainText('Suspended');
  await customer.open(`/applications/${reference}`);
  await expect(readiness).toContainText('A payment was disputed.');
  await portal.link('Undo').click();
  await portal.confirms('Reinstate');
  await expect(portal.main.getByText(`Application ${reference} is reinstated.`)).toBeVisible();
  await portal.open(`/support/applications/${reference}`);
  await expect(portal.main.getByRole('button', { name: /^Suspend/ })).toBeVisible();

  await portal.open('/support/mail');
  for (const subject of ['Approved', 'Sender name rejected', 'Suspended', 'Reinstated']) {
    await expect(portal.row(`${subject}: application ${reference}`)).toHaveCount(1);
  }
});

test('of two decisions, only the first one counts', async ({ portal, anotherBrowser, server }) => {
  const customer = await anotherBrowser();
  await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  await portal.staff();
  await portal.open('/support/senders');
  const asked = portal.row(reference);
  const [{ id }] = (await server.staff('sender', 'list')).filter(
    (request: { reference: string }) => request.reference === reference,
  );
  await asked.getByRole('button', { name: /^Reject / }).click();
  await portal.at(/^\/support\/confirm\?/);
  await server.staff('sender', 'accept', String(id));
  await portal.confirms('Reject', 'Too late');
  await expect(portal.alert('This request was decided before: it is accepted.')).toBeVisible();
  await expect(portal.button('Reject')).toHaveCount(0);
});

test('an old list shows that somebody else has decided', async ({
  portal,
  anotherBrowser,
  server,
}) => {
  const customer = await anotherBrowser();
  await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  await portal.staff();
  await portal.open('/support/senders');
  const [{ id }] = (await server.staff('sender', 'list')).filter(
    (request: { reference: string }) => request.reference === reference,
  );
  await server.staff('sender', 'accept', String(id));
  await portal.row(reference).getByRole('button', { name: /^Accept / }).click();
  await expect(portal.alert('This request was decided before: it is accepted.')).toBeVisible();
  await expect(portal.row(reference)).toHaveCount(0);
});

test('staff keep the lists of reasons', async ({ portal, scripts }) => {
  await portal.staff();
  await portal.open('/support/senders');
  await portal.page.getByText('Reasons to reject').first().click();
  const list = portal.page.getByLabel('Reasons to reject');
  const reason = `Not yours, ${unique('reason')}`;
  await list.fill(`${await list.inputValue()}\n${reason}`);
  // What is typed into another list stays when this one is saved.
  await portal.page.getByText('Reserved words').first().click();
  const words = portal.page.getByLabel('Reserved words');
  const typed = `${await words.inputValue()}\n${unique('word')}`;
  await words.fill(typed);
  await portal.form('Save').first().getByRole('button').click();
  await expect(list).toBeHidden();
  await expect(list).toHaveValue(new RegExp(reason));
  if (scripts) {
    await expect(words).toBeVisible();
    await expect(words).toHaveValue(typed);
  }
});
