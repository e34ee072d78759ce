import { expect, test } from '../support/test.js';
import { unique } from '../support/portal.js';

/** Returns a new sender name, because a name belongs to only one account. */
const name = () => unique('N').slice(0, 9);

test('a pending name refuses sends, an accepted one is used', async ({ portal, server }) => {
  const sender = name();
  const { key, reference } = await portal.customer(sender);
  await portal.open('/applications');
  await expect(portal.row(reference)).toContainText(sender);
  await expect(portal.row(reference)).toContainText('pending');
  const early = await server.send(key, '58000001', 'Before the name is accepted');
  expect(early).toMatchObject({ status: 403, body: { code: 500, reason: 'sender_pending' } });

  await server.staff('sender', 'accept', await portal.senderRequest(sender));
  await portal.reload();
  await expect(portal.row(reference)).toContainText(sender);
  await expect(portal.row(reference)).not.toContainText('pending');
  const sent = await server.send(key, '58000001', 'After the name is accepted');
  expect(sent).toMatchObject({ status: 200, body: { code: 200 } });
  expect(await portal.settled(key, sent.body['transid'])).toMatchObject({ sender });
});

test('a rejected name shows why, and can be replaced', async ({ portal, server }) => {
  const [bad, good] = [name(), name()];
  const { key, reference } = await portal.customer(bad);
  const reason = 'It belongs to a bank — see <rules> & "terms".';
  await server.staff('sender', 'reject', await portal.senderRequest(bad), '--reason', reason);

  await portal.open(`/applications/${reference}/sender`);
  await expect(portal.main).toContainText('rejected');
  await expect(portal.main).toContainText(reason);
  const refused = await server.send(key, '58000001', 'With a rejected name');
  expect(refused).toMatchObject({ status: 403, body: { code: 500, reason: 'sender_rejected' } });

  await portal.form('Request sender name').getByLabel('Sender name').fill(good);
  await portal.button('Request sender name').click();
  await expect(portal.main.locator('.notice')).toContainText(good);
  await expect(portal.main.locator('.notice')).not.toContainText(reason);
  // The history keeps the reason of the earlier rejection.
  await expect(portal.row(bad)).toContainText(reason);
  await server.staff('sender', 'accept', await portal.senderRequest(good));
  const sent = await server.send(key, '58000001', 'With a good name');
  expect(await portal.settled(key, sent.body['transid'])).toMatchObject({ sender: good });
});

test('an accepted name stays in use beside a new request', async ({ portal, server }) => {
  const [first, second] = [name(), name()];
  const { key, reference } = await portal.customer(first);
  await server.staff('sender', 'accept', await portal.senderRequest(first));

  await portal.open(`/applications/${reference}/sender`);
  await portal.form('Request sender name').getByLabel('Sender name').fill(second);
  await portal.button('Request sender name').click();
  await expect(portal.main.locator('.notice')).toContainText(second);
  await expect(portal.main).toContainText(`Your request for ${second} is pending`);
  await portal.open(`/applications/${reference}`);
  await expect(portal.fact('Sender name')).toHaveText(`${first} (${second} is being checked)`);
  const sent = await server.send(key, '58000001', 'While another name is asked for');
  expect(await portal.settled(key, sent.body['transid'])).toMatchObject({ sender: first });
});

test('an invalid name is refused, and stays in the form', async ({ portal }) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  await portal.open(`/applications/${reference}/sender`);
  const field = portal.form('Request sender name').getByLabel('Sender name');
  await field.fill('My Shop');
  await portal.button('Request sender name').click();
  await expect(portal.alert('A sender name has 1 to 11 letters from A to Z and digits')).toBeVisible();
  await expect(field).toHaveValue('My Shop');
});

test('a name that is accepted for one account is refused to another, whatever its case', async ({
  portal,
  server,
  anotherBrowser,
}) => {
  const sender = name();
  await portal.customer(sender);
  await server.staff('sender', 'accept', await portal.senderRequest(sender));

  const other = await anotherBrowser();
  await other.register();
  const { reference } = await other.createApplication();
  await other.open(`/applications/${reference}/sender`);
  await other.form('Request sender name').getByLabel('Sender name').fill(sender.toUpperCase());
  await other.button('Request sender name').click();
  await expect(other.alert('This sender name belongs to another customer')).toBeVisible();
});
