import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

test('the last carrier is drained only after a confirmation', async ({ portal, server }) => {
  await portal.staff();
  await portal.open('/support/carriers');
  await expect(portal.fact('State')).toHaveText('up');
  await portal.button('Drain sandbox').click();
  await portal.at(/^\/support\/confirm\?/);
  await expect(portal.main.getByText('No other carrier takes messages now.')).toBeVisible();
  await expect(portal.fact('Waiting messages')).toHaveText(/^\d+$/);
  expect((await server.staff('carrier', 'list'))[0].drained_at).toBeNull();
  await portal.confirms('Drain');
  await expect(portal.fact('State')).toHaveText(/^drained since/);
  await portal.link('Undo').click();
  await portal.confirms('Resume');
  await portal.on('/support/carriers');
  await expect(portal.fact('State')).toHaveText('up');
  await expect(portal.button('Drain sandbox')).toBeVisible();
});

test('customers read a note about an incident until staff end it', async ({
  portal,
  anotherBrowser,
}) => {
  const customer = await anotherBrowser();
  await customer.register();
  const { reference } = await customer.createApplication();
  const text = `Delivery is slow, ${unique('note')}`;

  await portal.staff();
  await portal.open('/support/carriers');
  await portal.page.getByLabel('Note').fill('x'.repeat(301));
  await portal.button('Open note').click();
  await expect(portal.alert('A note has 1 to 300 characters')).toBeVisible();
  await portal.hydrated();
  await portal.page.getByLabel('Note').fill(text);
  await portal.page.getByLabel('Carrier').selectOption('sandbox');
  await portal.button('Open note').click();
  await portal.at(/^\/support\/confirm\?/);
  await expect(portal.fact('Note')).toHaveText(text);
  await portal.confirms('Open note');
  await expect(portal.row(text)).toContainText('sandbox');

  const pages = ['/applications', `/applications/${reference}`, '/reports'];
  for (const path of pages) {
    await customer.open(path);
    const notice = customer.main.locator('.notice').filter({ hasText: text });
    await expect(notice).toContainText('since');
    await expect(notice).not.toContainText('sandbox');
  }

  await portal.hydrated();
  await portal.row(text).getByRole('button', { name: /^End / }).click();
  await portal.at(/^\/support\/confirm\?/);
  await portal.confirms('End');
  await expect(portal.row(text)).toHaveCount(0);
  for (const path of pages) {
    await customer.open(path);
    await expect(customer.main).not.toContainText(text);
  }
});

test('two members of staff see each other, and the second one sees who decided', async ({
  portal,
  anotherBrowser,
}) => {
  const customer = await anotherBrowser();
  await customer.register();
  const { reference } = await customer.createApplication(unique('A').slice(0, 9));
  const first = await portal.staff();
  const colleague = await anotherBrowser();
  const second = await colleague.staff();

  await portal.open('/support/senders');
  await expect(portal.row(reference)).not.toContainText('is looking at this too');
  await colleague.open('/support/senders');
  await expect(colleague.row(reference)).toContainText(`${first.email} is looking at this too`);
  await portal.reload();
  await expect(portal.row(reference)).toContainText(`${second.email} is looking at this too`);

  const late = colleague.row(reference);
  await late.getByRole('button', { name: /^Reject / }).click();
  await colleague.at(/^\/support\/confirm\?/);
  await portal.row(reference).getByRole('button', { name: /^Accept / }).click();
  await expect(portal.row(reference)).toHaveCount(0);
  await colleague.confirms('Reject', 'Too late');
  await expect(colleague.alert('This request was decided before: it is accepted.')).toBeVisible();
  await expect(colleague.alert(`${first.email} accepted a sender name`)).toBeVisible();
});
