import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

test('staff find an account and an application, and what they do is audited', async ({
  portal,
  scripts,
  anotherBrowser,
}) => {
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  const staff = await portal.staff();

  await portal.open('/support');
  if (scripts) await portal.page.keyboard.press('/');
  const search = portal.page.getByLabel('Search', { exact: true });
  if (scripts) await expect(search).toBeFocused();
  // A part of the email is enough.
  await search.fill(email.slice(2));
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
  await portal.at(`/support/applications/${reference}`);
  await expect(portal.fact('Account')).toHaveText(email);
  const sends = portal.page.getByRole('region', { name: 'Can this application send now?' });
  await expect(sends).toContainText("The customer hasn't requested activation.");
  await expect(portal.fact('Reference')).toHaveText(reference);

  await portal.open(`/support/audit?subject=${reference}`);
  const visit = portal.row('Viewed the application');
  await expect(visit).toHaveCount(1);
  await expect(visit).toContainText(staff.email);
  await portal.open(`/support/audit?subject=${encodeURIComponent(email)}`);
  await expect(portal.row('Added a note')).toContainText(staff.email);
});

test('staff disable and enable an account, and make a reset link that is shown once', async ({
  portal,
  scripts,
  anotherBrowser,
  watch,
}) => {
  watch.expectsEndedSessions();
  const customer = await anotherBrowser();
  const { email } = await customer.register();
  await portal.staff();
  await portal.open(`/support/accounts?email=${encodeURIComponent(email)}`);
  await portal.link(email).click();
  await portal.at(/^\/support\/accounts\/\d+$/);
  await portal.hydrated();
  await portal.button('Disable').click();
  await portal.confirms('Disable', 'A payment was disputed.');
  await expect(portal.fact('State')).toHaveText('disabled');
  await customer.page.goto('/applications');
  await customer.at('/login');

  await portal.link('Undo').click();
  await portal.confirms('Enable');
  await expect(portal.fact('State')).toHaveText('enabled');
  // The notice is gone after a reload, with its link to undo the action.
  if (scripts) {
    await portal.reload();
    await expect(portal.link('Undo')).toHaveCount(0);
  }
  await portal.button('Make a reset link').click();
  await portal.confirms('Make a reset link');
  const link = portal.page.getByLabel('Reset link');
  await expect(link).toHaveValue(/\/reset\/[0-9a-f]{64}$/);
  portal.server.keepsSecret((await link.inputValue()).split('/').at(-1)!);
  await portal.page.reload();
  await expect(portal.fact('State')).toHaveText('enabled');
  await expect(link).toHaveCount(0);
});
