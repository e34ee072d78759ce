import type { Portal } from '../support/portal.js';
import { expect, test } from '../support/test.js';
import { local } from '../support/times.js';

const HOUR_MS = 3_600_000;
const ZONE = 'Africa/Nairobi';

/** Returns a time in whole seconds, some hours from now. */
function ahead(hours: number): string {
  const seconds = Math.floor((Date.now() + hours * HOUR_MS) / 1000);
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Lets the account see times in another zone than its browser's. */
async function chooseZone(portal: Portal): Promise<void> {
  await portal.open('/account');
  await portal.page.getByLabel('Time zone').selectOption(ZONE);
  await portal.button('Save time zone').click();
  await expect(portal.main.getByText('The time zone is saved.')).toBeVisible();
}

/** Checks the time for which the open page's message or batch is scheduled. */
async function isFor(portal: Portal, sendAt: string): Promise<void> {
  const shown = `${local(sendAt, ZONE)} EAT, ${local(sendAt, 'UTC')} UTC`;
  await expect(portal.fact('Scheduled for')).toHaveText(shown);
}

/** Clicks a button that asks for a confirmation, checks its text, and confirms. */
async function confirm(portal: Portal, label: string, warning: string): Promise<void> {
  await portal.link(label).click();
  await portal.at(/\?confirm=/);
  await expect(portal.main).toContainText(warning);
  await expect(portal.link('Back')).toBeVisible();
  await portal.button(label).click();
  await expect(portal.main.locator('.notice-good')).toBeVisible();
  await portal.hydrated();
}

async function hasBalance(portal: Portal, reference: string, amount: string): Promise<void> {
  await portal.open(`/applications/${reference}`);
  await expect(portal.fact('Balance')).toHaveText(`${amount} USD`);
}

test('a scheduled message is shown in the zone of the account, and cancelled', async ({
  portal,
  server,
}) => {
  const { key, reference } = await portal.customer();
  await chooseZone(portal);
  const sendat = ahead(5);
  server.keepsSecret('58777041', 'For later');
  const parameters = { number: '58777041', message: 'For later', sendat };
  const sent = await server.api(`send/${key}`, parameters);
  expect(sent.status).toBe(200);
  const { transid, send_at: sendAt } = sent.body as { transid: string; send_at: string };
  await hasBalance(portal, reference, '9.95');
  await portal.link('1 message').click();
  await portal.at(/^\/reports\?.*status=scheduled/);
  await expect(portal.row('58777041')).toContainText('scheduled');
  await portal.link(transid).click();
  await portal.at(`/reports/${transid}`);
  await isFor(portal, sendAt);

  // Going back changes nothing.
  await portal.link('Cancel message').click();
  await portal.link('Back').click();
  await portal.at(`/reports/${transid}`);
  await expect(portal.fact('Status')).toContainText('scheduled');
  await confirm(portal, 'Cancel message', "1 message isn't sent, and 0.05 USD is released.");
  await expect(portal.main.getByText('It is cancelled.')).toBeVisible();
  await expect(portal.fact('Status')).toContainText('cancelled');
  await expect(portal.fact('Paid')).toHaveText('0.00 USD');
  await expect(portal.main.getByText('cancelled in the portal')).toBeVisible();
  await expect(portal.link('Cancel message')).toHaveCount(0);
  await hasBalance(portal, reference, '10.00');
  await expect(portal.heading('Scheduled')).toHaveCount(0);
});

test('a scheduled file is paused, resumed and cancelled', async ({ portal, server }) => {
  const { key, reference } = await portal.customer();
  await chooseZone(portal);
  const rows: [string, string][] = [['58777042', 'One for later'], ['58777043', 'Another one']];
  const sent = await server.upload(key, rows, { sendat: ahead(30) });
  expect(sent.status).toBe(200);
  const { batchid, send_at: sendAt } = sent.body as { batchid: string; send_at: string };
  await hasBalance(portal, reference, '9.90');
  await portal.open('/reports');
  await expect(portal.row(batchid)).toContainText('scheduled');
  await portal.link(batchid).click();
  await portal.at(`/reports/${batchid}`);
  await isFor(portal, sendAt);

  const subject = 'Up to 2 messages (0.10 USD)';
  await confirm(portal, 'Pause batch', `${subject} wait until you resume the batch.`);
  await expect(portal.main.locator('.notice-good')).toHaveText('The batch is paused.');
  await expect(portal.fact('Status')).toHaveText('paused');
  await expect(portal.link('Pause batch')).toHaveCount(0);
  await confirm(portal, 'Resume batch', `${subject} can be submitted again.`);
  await expect(portal.main.getByText('The batch is resumed.')).toBeVisible();
  await expect(portal.fact('Status')).toHaveText('scheduled');
  await isFor(portal, sendAt);

  await confirm(portal, 'Cancel batch', `${subject} aren't sent, and their price is released.`);
  await expect(portal.main.getByText('It is cancelled.')).toBeVisible();
  await expect(portal.fact('Status')).toHaveText('cancelled');
  await expect(portal.row('cancelled')).toContainText('2');
  for (const label of ['Pause batch', 'Resume batch', 'Cancel batch']) {
    await expect(portal.link(label)).toHaveCount(0);
  }
  await hasBalance(portal, reference, '10.00');
});

test('everything that an application has scheduled is cancelled at once', async ({
  portal,
  server,
}) => {
  const { key, reference } = await portal.customer();
  server.keepsSecret('58777044', 'Never sent');
  for (const hours of [5, 30]) {
    const parameters = { number: '58777044', message: 'Never sent', sendat: ahead(hours) };
    expect((await server.api(`send/${key}`, parameters)).status).toBe(200);
  }
  const rows: [string, string][] = [['58777045', 'Never sent either']];
  expect((await server.upload(key, rows, { sendat: ahead(8) })).status).toBe(200);
  await hasBalance(portal, reference, '9.85');
  await confirm(portal, 'Cancel everything scheduled', "3 messages aren't sent");
  await expect(portal.main.getByText('Everything that was scheduled is cancelled.')).toBeVisible();
  await expect(portal.fact('Balance')).toHaveText('10.00 USD');
  await expect(portal.link('Cancel everything scheduled')).toHaveCount(0);
});
