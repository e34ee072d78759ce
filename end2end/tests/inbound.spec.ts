import { randomInt } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server } from '../support/server.js';
import { expect, test as base } from '../support/test.js';

const SECRET = 'a-secret-of-the-tests';
/** A carrier that posts messages from handsets. Sent messages go to the sandbox. */
const SETTINGS = `
[[carrier]]
name = "sandbox"
kind = "sandbox"

[[carrier]]
name = "upstream"
kind = "http"
url = "http://127.0.0.1:9/"
form = "to={number}&text={message}"
[[carrier.answer]]
http = 200
outcome = "accepted"
[carrier.inbound]
secret = "${SECRET}"
number = "from"
recipient = "to"
message = "text"
message_id = "id"

[[route]]
carrier = "sandbox"
`;

const test = base.extend<{}, { server: Server }>({
  server: [
    async ({}, use) => {
      const file = join(mkdtempSync(join(tmpdir(), 'heliograph-settings-')), 'heliograph.toml');
      writeFileSync(file, SETTINGS);
      const server = await Server.start({ HELIOGRAPH_CONFIG: file });
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

/** Returns a local number that no other test uses. */
function newNumber(first: string): string {
  return `${first}${randomInt(100_000, 1_000_000)}`;
}

/** Lets the carrier deliver a message from a handset. */
async function receive(server: Server, from: string, to: string, text: string): Promise<void> {
  server.keepsSecret(from, text);
  const id = String(randomInt(1_000_000_000));
  const query = new URLSearchParams({ from, to, text, id });
  const answer = await fetch(`${server.url}/carriers/upstream/inbound/${SECRET}?${query}`);
  expect(answer.status).toBe(200);
}

test('staff give a number to an application, and its owner reads the messages', async ({
  portal,
  anotherBrowser,
  server,
  scripts,
}) => {
  const customer = await anotherBrowser();
  const { reference } = await customer.customer();
  const [ours, handset, another] = [newNumber('50'), newNumber('57'), newNumber('58')];
  await receive(server, handset, ours, 'Too early');

  await portal.staff();
  await portal.open('/support');
  await portal.link('Unassigned messages').first().click();
  await portal.hydrated();
  const early = portal.row('Too early');
  await expect(early).toContainText(`266${ours}`);
  // Nobody has the number yet.
  await early.getByRole('button', { name: 'Assign' }).click();
  await expect(portal.alert('No application has this number')).toBeVisible();

  await portal.open('/support/numbers');
  const form = portal.form('Add');
  await form.getByLabel('Number').fill(ours);
  await form.getByLabel('Application').fill(reference);
  await portal.button('Add').click();
  await portal.confirms('Add');
  await expect(portal.main).toContainText(`Number 266${ours} is assigned.`);
  await expect(portal.row(`266${ours}`)).toContainText(reference);
  await portal.open('/support/inbound');
  await portal.row('Too early').getByRole('button', { name: 'Assign' }).click();
  await expect(portal.row('Too early')).toHaveCount(0);

  await customer.open(`/applications/${reference}`);
  await customer.link('Inbox').click();
  await customer.hydrated();
  await expect(customer.row('Too early')).toContainText(`266${handset}`);
  await receive(server, another, ours, 'STOP!');
  if (!scripts) await customer.reload();
  // The open page shows the new message.
  await expect(customer.row(`266${another}`)).toContainText('stop');

  await customer.page.getByLabel('From number').fill(handset);
  await customer.page.getByLabel('To number').fill(ours);
  await customer.page.getByLabel('Text').fill('too EARLY');
  await customer.button('Apply filters').click();
  await expect(customer.row('Too early')).toHaveCount(1);
  await expect(customer.row(`266${another}`)).toHaveCount(0);
  const file = await customer.page.request.get(
    (await customer.link('Download CSV').getAttribute('href'))!,
  );
  expect(await file.text()).toMatch(/^inboundid,number,.*\r\ni_.*Too early.*\r\n$/);

  // The STOP added an opt-out.
  await customer.link('Opt-outs').click();
  await expect(customer.row(`+266${another}`)).toContainText('The recipient');

  await portal.open('/support/numbers');
  await portal.row(`266${ours}`).getByRole('button', { name: 'Remove' }).click();
  await portal.confirms('Remove');
  await expect(portal.main).toContainText(`Number 266${ours} is removed.`);
  await expect(portal.row(`266${ours}`)).toHaveCount(0);
});

test("a message's page shows the conversation", async ({ portal, server }) => {
  const { reference, key } = await portal.customer();
  const [ours, handset] = [newNumber('50'), newNumber('57')];
  await server.staff('number', 'add', ours, '--application', reference);
  const sent = await server.send(key, handset, 'Will you come?');
  const transid = sent.body['transid'] as string;
  await portal.open(`/reports/${transid}`);
  await expect(portal.heading('Conversation')).toHaveCount(0);
  await receive(server, handset, ours, 'Yes, at eight');
  await portal.reload();
  const thread = portal.page.getByRole('region', { name: 'Messages to and from this number' });
  await expect(thread.getByRole('row').nth(1)).toContainText('Will you come?');
  await expect(thread.getByRole('row').nth(2)).toContainText('Yes, at eight');
  await expect(thread.getByRole('row').nth(2)).toContainText('received');
});
