import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

test('staff find an account and an application, and what they do is audited', async ({
  portal,
  anotherBrowser,
}) => {
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  const staff = await portal.staff();

  await portal.open('/support/search');
  await portal.page.getByLabel('Search', { exact: true }).fill(email);
  await portal.button('Search').click();
  await portal.at(/^\/support\/search\?q=/);
  await portal.hydrated();
  await expect(portal.row(email)).toHaveCount(1);
  await portal.link(email).click();
  await portal.at(/^\/support\/accounts\/\d+$/);
  await portal.hydrated();
  await expect(portal.fact('State')).toHaveText('enabled');

  const note = unique('Called at noon ');
  await portal.page.getByLabel('Note', { exact: true }).fill(note);
  await portal.button('Add the note').click();
  await expect(portal.main.getByText(note)).toBeVisible();

  await portal.link(reference).click();
  await portal.at(new RegExp(`^/support/accounts/\\d+/${reference}$`));
  await expect(portal.main.getByText(`You are viewing an application of ${email}.`)).toBeVisible();
  await expect(portal.fact('Reference')).toHaveText(reference);

  await portal.open(`/support/audit?subject=${reference}`);
  const visit = portal.row('application.visit');
  await expect(visit).toHaveCount(1);
  await expect(visit).toContainText(staff.email);
  await portal.open(`/support/audit?subject=${encodeURIComponent(email)}`);
  await expect(portal.row('account.note')).toContainText(staff.email);
});

test('staff disable and enable an account, and make a reset link that is shown once', async ({
  portal,
  anotherBrowser,
}) => {
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  await portal.staff();
  await portal.open(`/support/accounts?email=${encodeURIComponent(email)}`);
  await portal.link(email).click();
  await portal.at(/^\/support\/accounts\/\d+$/);
  await portal.hydrated();
  await portal.page.getByLabel('Reason to disable').fill('A payment was disputed.');
  await portal.button('Disable').click();
  await expect(portal.fact('State')).toHaveText('disabled');
  await customer.page.goto('/applications');
  await customer.at('/login');

  await portal.button('Enable').click();
  await expect(portal.fact('State')).toHaveText('enabled');
  await portal.button('Make a reset link').click();
  const link = portal.main.getByText(/\/reset\/[0-9a-f]{64}$/);
  await expect(link).toBeVisible();
  portal.server.keepsSecret((await link.textContent())!.split('/').at(-1)!);
  await portal.page.reload();
  await expect(portal.fact('State')).toHaveText('enabled');
  await expect(link).toHaveCount(0);
});
