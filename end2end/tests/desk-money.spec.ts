import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

/** Returns the reference with another first digit. */
function mistyped(reference: string): string {
  return `${reference[0] === '9' ? '0' : '9'}${reference.slice(1)}`;
}

test('staff assign an unmatched deposit to a suggested application', async ({
  portal,
  anotherBrowser,
  server,
}) => {
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  const bankId = unique('=bank');
  await server.staff('deposit', 'add', mistyped(reference), '12.5', '--bank-id', bankId);

  await portal.staff();
  await portal.open('/support/deposits');
  const assign = portal.row(bankId).getByRole('button', { name: `Assign to ${reference}` });
  await assign.click();
  await portal.at(/^\/support\/deposits\/assign\?/);
  await portal.hydrated();
  await expect(portal.fact('Account')).toHaveText(email);
  await expect(portal.fact('Amount')).toContainText('12.5');
  await portal.button('Assign').click();
  // The next unmatched deposit opens, if there is one.
  const said = `12.50 USD (${bankId}) is assigned to ${reference}.`;
  await expect(portal.main.getByText(said)).toBeVisible();
  await portal.open('/support/deposits');
  await expect(portal.row(bankId)).toHaveCount(0);

  await customer.open(`/applications/${reference}`);
  await expect(customer.fact('Balance')).toContainText('12.5');
});

test('a deposit that somebody else assigned is refused', async ({
  portal,
  anotherBrowser,
  server,
}) => {
  const customer = await anotherBrowser();
  await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  const bankId = unique('bank');
  await server.staff('deposit', 'add', 'rent', '1', '--bank-id', bankId);
  await portal.staff();
  await portal.open(`/support/deposits/assign?bank_id=${bankId}&reference=${reference}`);
  await server.staff('deposit', 'assign', bankId, reference);
  await portal.button('Assign').click();
  const told = portal.main.getByText(/This deposit was credited to \d{6} by .+ at .+ UTC\./);
  await expect(told).toBeVisible();
});

test('staff import a bank statement', async ({ portal, anotherBrowser }) => {
  const customer = await anotherBrowser();
  await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  const bankId = unique('bank');

  await portal.staff();
  await portal.importStatement([`${bankId};${reference};7,50`], bankId);

  await customer.open(`/applications/${reference}`);
  await expect(customer.fact('Balance')).toContainText('7.5');
});
