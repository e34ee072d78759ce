import { expect, test as base } from '../support/test.js';
import type { Portal } from '../support/portal.js';
import { Receiver } from '../support/receiver.js';

const test = base.extend<{ receiver: Receiver }>({
  receiver: async ({}, use) => {
    const receiver = await Receiver.start();
    await use(receiver);
    await receiver.stop();
  },
});

/** Adds an endpoint in the portal, and returns its secret. Its page is open then. */
async function addEndpoint(
  portal: Portal,
  reference: string,
  url: string,
  kind: 'Live' | 'Test' = 'Test',
  events: string[] = [],
): Promise<string> {
  await portal.open(`/applications/${reference}/webhooks`);
  const form = portal.form('Add endpoint');
  await form.getByLabel('URL').fill(url);
  await form.getByLabel(new RegExp(`^${kind}:`)).check();
  for (const name of events) await form.getByLabel(name, { exact: true }).check();
  await portal.button('Add endpoint').click();
  return readSecret(portal);
}

/** Reads the secret that the open page shows once. */
async function readSecret(portal: Portal): Promise<string> {
  const field = portal.page.getByLabel('Signing secret');
  await expect(field).toHaveValue(/^whsec_/);
  const secret = await field.inputValue();
  portal.server.keepsSecret(secret);
  await portal.hydrated();
  return secret;
}

/** Reloads the page until a row of the table shows a text. */
async function rowWith(portal: Portal, text: string): Promise<void> {
  await expect(async () => {
    await portal.reload();
    await expect(portal.row(text).first()).toBeVisible({ timeout: 500 });
  }).toPass();
}

test('from no endpoint to one that passes all checks', async ({ portal, receiver }) => {
  const { reference } = await portal.customer();
  await portal.open(`/applications/${reference}`);
  await portal.link('Webhooks').click();
  await portal.hydrated();
  await expect(portal.main).toContainText('This application has no endpoints yet.');

  receiver.secrets = [await addEndpoint(portal, reference, receiver.url)];
  await expect(portal.fact('URL')).toHaveText(receiver.url);
  await expect(portal.fact('Status')).toContainText('active');
  await expect(portal.fact('Events')).toHaveText('All types except message.submitted');

  await portal.button('Check endpoint').click();
  await expect(portal.main).toContainText('Your endpoint passed all checks.');
  await expect(portal.row('A forged event')).toContainText('Status 401');
  await expect(portal.row('An event with an old timestamp')).toContainText('Status 400');
  await expect(portal.row('webhook.test')).toContainText('delivered 200');
  // The findings and the secret are shown once.
  await portal.reload();
  await expect(portal.main).not.toContainText('passed all checks');
  await expect(portal.page.getByLabel('Signing secret')).toHaveCount(0);

  await portal.button('Send test event').click();
  await expect(portal.main).toContainText('We sent a test event.');
  await expect(portal.row('webhook.test')).toHaveCount(2);
  expect(receiver.deliveries.at(-1)!.event).toMatchObject({ type: 'webhook.test', test: true });

  await portal.open(`/applications/${reference}/webhooks`);
  await expect(portal.row(receiver.url)).toContainText('Test');
  await expect(portal.row(receiver.url)).toContainText('active');
  await portal.open(`/applications/${reference}`);
  await expect(portal.row('The webhook endpoint')).toContainText('was added');
});

test('the check reports an endpoint that accepts forged events', async ({ portal, receiver }) => {
  const { reference } = await portal.customer();
  await addEndpoint(portal, reference, receiver.url);
  await portal.button('Check endpoint').click();
  await expect(portal.main).toContainText('Your endpoint has a problem:');
  const forged = portal.row('The endpoint accepted a forged event');
  await expect(forged).toContainText('Verify the header webhook-signature');
  await expect(portal.row('10 minutes old')).toContainText('advice');

  // If the server can't be reached, one request is enough to say so.
  await receiver.stop();
  await portal.button('Check endpoint').click();
  await expect(portal.main).toContainText("We didn't send the other requests");
  await expect(portal.row('The connection failed').first()).toContainText('No answer');
});

test('a failed event is replayed, and its body and answers are shown', async ({
  portal,
  server,
  receiver,
}) => {
  const { reference, testKey } = await portal.customer();
  receiver.secrets = [
    await addEndpoint(portal, reference, receiver.url, 'Test', ['message.delivered']),
  ];
  await expect(portal.fact('Events')).toHaveText('message.delivered');
  receiver.status = 503;
  const sent = await server.send(testKey, '00000001', 'To be reported');
  const transid = sent.body['transid'] as string;
  await rowWith(portal, 'failed 503');
  await expect(portal.fact('Status')).toContainText('failing');
  const failed = portal.row('failed 503').first();
  await expect(failed).toContainText('message.delivered');

  await failed.getByRole('link').click();
  await portal.hydrated();
  await expect(portal.main.locator('pre').first()).toContainText(transid);
  await expect(portal.main.locator('pre.answer').first()).toHaveText('is 503');

  receiver.status = 200;
  await portal.button('Replay').click();
  await expect(portal.main).toContainText('We deliver the event again now.');
  await rowWith(portal, 'delivered 200');
  await expect(portal.fact('Status')).toHaveText(/^active\s*$/);
  const taken = receiver.deliveries.filter(({ event }) => event['data'].transid === transid);
  expect(new Set(taken.map(({ id }) => id)).size).toBe(1);

  await portal.link('Failed attempts').click();
  await expect(portal.row('failed 503').first()).toBeVisible();
  await expect(portal.row('delivered 200')).toHaveCount(0);

  // It has taken all events, so replaying a day delivers nothing again.
  const count = receiver.deliveries.length;
  await portal.page.getByLabel('Replay all since').fill('2026-01-01T00:00');
  await portal.button('Replay all').click();
  await expect(portal.main).toContainText('We deliver the events again now.');
  expect(receiver.deliveries.length).toBe(count);
});

test('a secret is rotated, and both sign for a day', async ({ portal, receiver }) => {
  const { reference } = await portal.customer();
  const old = await addEndpoint(portal, reference, receiver.url, 'Live');
  await portal.reload();
  await portal.link('Rotate secret').click();
  await expect(portal.main).toContainText('both the old and the new secret');
  await portal.button('Rotate secret').click();
  const secret = await readSecret(portal);
  expect(secret).not.toBe(old);
  receiver.secrets = [old, secret];
  await portal.button('Send test event').click();
  await expect(portal.row('webhook.test')).toContainText('delivered 200');
  expect(receiver.deliveries.at(-1)!.signedWith).toEqual([old, secret]);
});

test('an endpoint is changed and removed', async ({ portal, receiver }) => {
  const { reference } = await portal.customer();
  await addEndpoint(portal, reference, receiver.url);

  const form = portal.form('Change URL');
  await form.getByLabel('URL').fill('http://10.0.0.1/');
  await portal.button('Change URL').click();
  await expect(portal.alert('private or reserved address')).toBeVisible();
  await expect(form.getByLabel('URL')).toHaveValue('http://10.0.0.1/');
  await form.getByLabel('URL').fill(`${receiver.url}/moved`);
  await portal.button('Change URL').click();
  await expect(portal.fact('URL')).toHaveText(`${receiver.url}/moved`);

  const events = portal.form('Save events');
  await events.getByLabel('batch.done', { exact: true }).check();
  await events.getByLabel('message.submitted', { exact: true }).check();
  await portal.button('Save events').click();
  await expect(portal.fact('Events')).toHaveText('message.submitted, batch.done');

  await portal.link('Remove endpoint').click();
  await expect(portal.main).toContainText("You can't undo this.");
  await portal.button('Remove endpoint').click();
  await expect(portal.main).toContainText('The endpoint is removed.');
  await expect(portal.main).toContainText('This application has no endpoints yet.');
});

test("a replaced key's endpoints are removed if the owner wants that", async ({
  portal,
  receiver,
}) => {
  const { reference, password } = await portal.customer();
  await addEndpoint(portal, reference, receiver.url, 'Live');
  await addEndpoint(portal, reference, receiver.url, 'Test');
  await portal.replaceKey(reference, 'live', password);
  await portal.open(`/applications/${reference}/webhooks`);
  await expect(portal.row(receiver.url)).toHaveCount(2);

  await portal.open(`/applications/${reference}/keys?replace=live`);
  await expect(portal.main.getByText(receiver.url)).toHaveCount(1);
  await portal.page.getByLabel('Also remove the endpoint').check();
  await portal.form('Replace key').getByLabel('Password').fill(password);
  await portal.button('Replace key').click();
  await portal.newKeys(1);
  await portal.open(`/applications/${reference}/webhooks`);
  await expect(portal.row(receiver.url)).toHaveCount(1);
  await expect(portal.row(receiver.url)).toContainText('Test');
});

test('staff see the endpoints of an account', async ({ portal, receiver, anotherBrowser }) => {
  const { email, reference } = await portal.customer();
  await addEndpoint(portal, reference, receiver.url, 'Live');
  const desk = await anotherBrowser();
  await desk.staff();
  await desk.open(`/support/accounts?email=${encodeURIComponent(email)}`);
  await desk.link(email).click();
  await expect(desk.row(receiver.url)).toContainText(reference);
  await expect(desk.row(receiver.url)).toContainText('active');
});
