import { expect, test } from '../support/test.js';
import { Portal, unique } from '../support/portal.js';

test('a second application of one category is refused', async ({ portal }) => {
  await portal.register();
  await portal.createApplication();
  const name = unique('S').slice(0, 9);

  await portal.open('/applications/new');
  await portal.fillApplication(name, 'SMS');
  await portal.button('Create application').click();
  await expect(portal.alert('You already have an application of this category')).toBeVisible();
  // The form keeps the typed values.
  await expect(portal.page.getByLabel('Category')).toHaveValue('SMS');
  await expect(portal.page.getByLabel('Sender name')).toHaveValue(name);

  // The same form accepts the other category.
  await portal.page.getByLabel('Category').selectOption('Electricity');
  await portal.button('Create application').click();
  await portal.readKeys();
  await portal.open('/applications');
  await expect(portal.row('SMS')).toHaveCount(1);
  await expect(portal.row('Electricity')).toHaveCount(1);
  await expect(portal.row('Electricity')).toContainText(name);
});

test('a second application without a sender name is refused', async ({ portal }) => {
  await portal.register();
  await portal.createApplication();

  await portal.open('/applications/new');
  await portal.fillApplication('', 'Electricity');
  await portal.button('Create application').click();
  await expect(portal.alert('already have an application without a sender name')).toBeVisible();
  await expect(portal.page.getByLabel('Category')).toHaveValue('Electricity');

  await portal.open('/applications');
  await expect(portal.page.getByRole('row')).toHaveCount(2);
});

test('an invalid sender name is refused, and stays in the form', async ({
  portal,
  scripts,
}) => {
  await portal.register();
  for (const name of ['My Shop', 'TwelveLetter', 'Café']) {
    await portal.open('/applications/new');
    await portal.fillApplication(name, 'Electricity');
    // With scripts, the field is marked while a person types.
    const marked = portal.page.locator('[aria-invalid]');
    const invalid = portal.page.getByLabel('Sender name').and(marked);
    await expect(invalid).toHaveCount(scripts ? 1 : 0);
    await portal.button('Create application').click();
    await expect(portal.alert('A sender name has 1 to 11 letters from A to Z and digits')).toBeVisible();
    await expect(portal.page.getByLabel('Sender name')).toHaveValue(name);
    await expect(portal.page.getByLabel('Sender name')).toHaveAttribute('aria-invalid', 'true');
    const why = /^A sender name has 1 to 11 letters from A to Z and digits/;
    await expect(portal.page.getByLabel('Sender name')).toHaveAccessibleDescription(why);
    await expect(portal.page.getByLabel('Category')).toHaveValue('Electricity');
  }
  await portal.open('/applications');
  await expect(portal.page.getByRole('table')).toHaveCount(0);
});

test('a double click creates one application with a key', async ({ portal, server }) => {
  const account = await portal.register();
  await portal.open('/applications/new');
  await portal.fillApplication('', 'SMS');
  await portal.button('Create application').dblclick();
  // Without scripts, the page may show the answer to the second submission.
  await expect(
    portal.page.getByText('Save this now').or(portal.alert('of this category')),
  ).toBeVisible();

  let keys = await portal.shownKeys();
  await portal.open('/applications');
  await expect(portal.page.getByRole('row')).toHaveCount(2);
  if (keys.length === 0) {
    // A row is a link as a whole. Its links are covered.
    await portal.row('SMS').click();
    await expect(portal.page.getByRole('heading', { name: 'SMS application' })).toBeVisible();
    keys = await portal.shownKeys();
  }
  if (keys.length === 0) {
    // The keys are shown once. The second click made the browser drop the page that showed them.
    const listed = await server.staff('application', 'list');
    const created = listed.find((one: { email: string }) => one.email === account.email);
    keys = [await portal.replaceKey(created.reference, 'live', account.password)];
  }
  expect(keys.some((key) => key.includes('hk_'))).toBe(true);
});

test('going back after creating an application shows no key, and creates nothing', async ({
  portal,
}) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  await portal.page.goBack();
  await portal.at('/applications/new');
  await portal.hydrated();
  expect(await portal.shownKeys()).toEqual([]);
  await portal.button('Create application').click();
  // The other category is never chosen for a customer. A browser may restore the earlier choice.
  await expect(portal.alert(/Choose a category|You already have an application/)).toBeVisible();
  await portal.open(`/applications/${reference}`);
  expect(await portal.shownKeys()).toEqual([]);
});

test('one form in two tabs creates one application', async ({
  portal,
  server,
  context,
  scripts,
}) => {
  await portal.register();
  const second = new Portal(await context.newPage(), server, scripts);
  for (const tab of [portal, second]) {
    await tab.open('/applications/new');
    await tab.fillApplication('', 'SMS');
  }
  await portal.button('Create application').click();
  await portal.readKeys();
  await second.button('Create application').click();
  await expect(second.alert('You already have an application of this category')).toBeVisible();
});

test('of two tabs, the settings saved last win, and going back saves nothing', async ({
  portal,
  server,
  context,
  scripts,
}) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  const second = new Portal(await context.newPage(), server, scripts);
  const tabs = [portal, second];
  for (const tab of tabs) await tab.open(`/applications/${reference}/settings`);
  for (const [index, tab] of tabs.entries()) {
    await tab.page.getByLabel('Low balance').fill(`${index + 5}`);
    await tab.button('Save mails').click();
    await expect(tab.page.getByText('The mails are saved.')).toBeVisible();
  }
  await portal.page.goBack();
  await portal.hydrated();
  await expect(portal.page.getByText('The mails are saved.')).toHaveCount(0);
  await portal.reload();
  await expect(portal.page.getByLabel('Low balance')).toHaveValue('6');
});

test('an application can be created with the keyboard alone', async ({ portal, scripts }) => {
  const { page } = portal;
  await portal.register();
  // The pressed button is gone, so the content of the new page has the focus.
  if (scripts) await expect(portal.main).toBeFocused();
  await portal.open('/applications');
  await portal.hydrated();

  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: /^Skip to/ })).toBeFocused();
  await portal.tabTo(portal.link('New application'));
  await page.keyboard.press('Enter');
  await portal.at('/applications/new');
  await portal.hydrated();
  if (scripts) await expect(portal.main).toBeFocused();

  await portal.tabTo(page.getByLabel('Category'));
  await page.keyboard.press('e');
  await expect(page.getByLabel('Category')).toHaveValue('Electricity');
  await portal.tabTo(page.getByLabel('Sender name'));
  await page.keyboard.type('Umeme');
  await portal.tabTo(portal.button('Create application'));
  await page.keyboard.press('Enter');

  const { reference } = await portal.readKeys();
  await portal.at(`/applications/${reference}`);
  await portal.tabTo(portal.button('Request activation'));
  await page.keyboard.press('Enter');
  await expect(portal.main).toContainText('You requested activation');
});

test('the key can be copied, or selected without scripts', async ({
  portal,
  scripts,
  browserName,
}) => {
  // Chromium's headless shell asks for this permission, and nobody could grant it.
  if (browserName === 'chromium') {
    await portal.page.context().grantPermissions(['clipboard-write']);
  }
  await portal.register();
  await portal.open('/applications/new');
  await portal.fillApplication('', 'SMS');
  await portal.button('Create application').click();
  const { key } = await portal.readKeys();
  const field = portal.page.getByLabel('API key', { exact: true });
  await expect(field).toHaveValue(key);
  await expect(field).toHaveAttribute('readonly');

  if (scripts) {
    await portal.button('Copy key').click();
    await expect(portal.main).toContainText('Copied');
    // Checked by pasting, because not every browser lets a script read the clipboard.
    await portal.open('/account');
    const password = portal.form('Change password').getByLabel('Current password');
    await password.press('ControlOrMeta+V');
    await expect(password).toHaveValue(key);
  } else {
    await expect(portal.button('Copy key')).toHaveCount(0);
  }
});

test('an application of a category other than SMS cannot send', async ({ portal, server }) => {
  await portal.register();
  const { key, reference } = await portal.createApplication('', 'Electricity');
  await server.staff('application', 'approve', reference);
  const answer = await server.send(key, '58000001', 'Not for SMS');
  expect(answer).toMatchObject({ status: 403, body: { code: 505, reason: 'api_not_applicable' } });
  // The log shows a call a few seconds after its answer.
  await expect(async () => {
    await portal.open(`/applications/${reference}/start`);
    await expect(portal.row('GET /sms/send')).toContainText('api_not_applicable', { timeout: 500 });
  }).toPass();
});

test('a suspension shows its reason and stops sends until it is lifted', async ({
  portal,
  server,
}) => {
  const { key, reference } = await portal.customer();
  const reason = 'The bank asks questions about <payment> & co.';
  await server.staff('application', 'suspend', reference, '--reason', reason);

  await portal.open(`/applications/${reference}`);
  await expect(portal.fact('Status')).toHaveText('Suspended');
  await expect(portal.main).toContainText(reason);
  const refused = await server.send(key, '58000001', 'While suspended');
  expect(refused).toMatchObject({ status: 403, body: { code: 503, reason: 'api_suspended' } });

  await server.staff('application', 'reinstate', reference);
  await portal.reload();
  await expect(portal.fact('Status')).toHaveText('Active');
  const readiness = portal.page.getByRole('region', { name: 'Can this application send now?' });
  await expect(readiness).toContainText('Yes.');
  await expect(readiness).not.toContainText(reason);
  await expect(portal.row('The application was suspended.')).toContainText(reason);
  const sent = await server.send(key, '58000001', 'After reinstatement');
  expect(sent).toMatchObject({ status: 200, body: { code: 200 } });
});

test('another account sees nothing of an application and its messages', async ({
  portal,
  server,
  anotherBrowser,
  watch,
}) => {
  watch.expects(/404/);
  const { reference, key } = await portal.customer();
  const sent = await server.send(key, '58333444', 'Nobody else reads this');
  await portal.settled(key, sent.body['transid']);

  const other = await anotherBrowser();
  await other.register();
  for (const path of [`/applications/${reference}`, `/reports/${sent.body['transid']}`]) {
    const answer = await other.page.goto(path);
    expect(answer?.status(), path).toBe(404);
    await expect(other.heading('Nothing here')).toBeVisible();
  }
  await other.open('/reports');
  await expect(other.main).not.toContainText('58333444');
});

test('the customer chooses what happens to a message whose answer is lost', async ({ portal }) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  await portal.open(`/applications/${reference}/settings`);
  const choice = portal.page.getByLabel("If a carrier's answer is lost");
  const inForce = portal.main.getByText(/^In force: /);
  await expect(choice.locator('option')).toHaveText(["Don't resend", 'Resend once']);
  await expect(choice).toHaveValue('hold');
  await expect(inForce).toHaveText("In force: Don't resend");

  const words = [['Resend once', 'resend'], ["Don't resend", 'hold']] as const;
  for (const [word, value] of words) {
    await choice.selectOption(word);
    await portal.button('Save').click();
    await expect(inForce).toHaveText(`In force: ${word}`);
    await expect(choice).toHaveValue(value);
    await portal.reload();
    await expect(inForce).toHaveText(`In force: ${word}`);
    await expect(choice).toHaveValue(value);
  }
});

test("nobody changes another account's choice", async ({ portal, anotherBrowser }) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  const other = await anotherBrowser();
  await other.register();
  const form = { reference, lost_answer: 'resend' };
  await other.page.request.post('/fn/set-lost-answer', { form });
  await portal.open(`/applications/${reference}/settings`);
  await expect(portal.main.getByText(/^In force: /)).toHaveText("In force: Don't resend");
});

test('the first steps follow a new customer until the first message is sent', async ({
  portal,
  server,
  scripts,
}) => {
  await portal.register();
  const steps = portal.page.getByRole('region', { name: 'First steps' });
  const step = (name: string) => steps.getByRole('listitem').filter({ hasText: name });
  await expect(step('Create an SMS application')).toHaveText(/^To do: /);
  await expect(step('Try the test key')).toHaveText(/^Later: /);

  const application = await portal.createApplication();
  const { reference, key, testKey } = application;
  await portal.open('/applications');
  await expect(step('Create an SMS application')).toHaveText(/^Done: /);
  await expect(step('Ask for a sender name')).toHaveText(/\(optional\)$/);
  const tried = await server.send(testKey, '00000001', 'Does it work');
  expect(tried).toMatchObject({ status: 200 });
  // With scripts, the page updates itself.
  if (!scripts) await portal.reload();
  await expect(step('Try the test key')).toHaveText(/^Done: /);

  await steps.getByRole('link', { name: 'Ask for activation' }).click();
  await portal.at(`/applications/${reference}`);
  await portal.button('Request activation').click();
  await expect(portal.main).toContainText('You requested activation');
  await portal.open('/applications');
  await expect(step('Ask for activation')).toHaveText(/^Waits: /);

  await server.staff('application', 'approve', reference);
  await portal.deposit(application, '10');
  await portal.reload();
  await expect(step('Make a deposit')).toHaveText(/^Done: /);
  await expect(step('Send the first message')).toHaveText(/^To do: /);
  const sent = await server.send(key, '58000001', 'The first one');
  await portal.settled(key, sent.body['transid']);
  await portal.reload();
  await expect(steps).toHaveCount(0);
});

test('the overview shows counts, the balance and failures once a message was sent', async ({
  portal,
  server,
}) => {
  const { reference, key } = await portal.customer();
  const overview = portal.page.getByRole('region', { name: 'Overview' });
  await portal.open('/applications');
  await expect(portal.heading('First steps')).toBeVisible();
  await expect(overview).toHaveCount(0);

  for (const number of ['58000001', '00000002']) {
    const sent = await server.send(key, number, 'Overview');
    await portal.settled(key, sent.body['transid']);
  }
  await portal.reload();
  const counts = (status: string) =>
    overview.getByRole('row').filter({ hasText: status }).getByRole('link');
  await expect(counts('Total')).toHaveText(['2', '2', '2']);
  await expect(counts('failed')).toHaveText(['1', '1', '1']);
  await expect(portal.fact('Balance')).toContainText('After your first full day of sending');
  await expect(portal.fact('Today')).toContainText('2 messages');
  await expect(portal.fact('This month')).toContainText('0.10 USD charged');
  await expect(portal.fact('Delivery rate')).toContainText('50.0 %');
  await expect(overview).not.toContainText('Waiting for support');

  // A failure links to its message. A count links to the counted messages.
  await overview.getByRole('listitem').getByRole('link', { name: '00000002' }).click();
  await expect(portal.heading('Message')).toBeVisible();
  await portal.open('/applications');
  await counts('failed').first().click();
  await portal.at(/^\/reports\?/);
  await expect(portal.row('00000002')).toHaveCount(1);
  await expect(portal.row('58000001')).toHaveCount(0);

  await portal.open(`/applications/${reference}/sender`);
  const name = `Over${reference.slice(-4)}`;
  await portal.form('Request sender name').getByLabel('Sender name').fill(name);
  await portal.button('Request sender name').click();
  await expect(portal.main).toContainText('pending');
  await portal.open('/applications');
  await expect(overview.getByRole('link', { name: `Sender name ${name}` })).toBeVisible();

  // One banner says what blocks sending, with one next step.
  const step = portal.page.getByRole('region', { name: 'Next step' });
  await expect(step).toHaveCount(0);
  await server.staff('application', 'suspend', reference, '--reason', 'A question');
  await portal.reload();
  await expect(step).toContainText('is suspended and can\'t send. Reason: A question');
  await expect(step.getByRole('link')).toHaveCount(1);
});

test('an application has a name, and one that was never used is deleted', async ({ portal }) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  const own = `/applications/${reference}`;
  await portal.open(own);
  await expect(portal.fact('Sender name')).toHaveText('Heliograph (default)');
  await portal.open(`${own}/settings`);
  const field = portal.form('Save name').getByLabel('Name', { exact: true });
  await field.fill('🛒'.repeat(200));
  await portal.button('Save name').click();
  await expect(portal.alert('A name has at most 40 characters')).toBeVisible();
  await field.fill('Shop 🛒');
  await portal.button('Save name').click();
  await expect(portal.page.getByText('The name is saved.')).toBeVisible();
  await expect(portal.heading('Shop 🛒')).toBeVisible();
  await portal.open('/applications');
  await expect(portal.row('Shop 🛒')).toContainText(reference);

  // A row is a link as a whole.
  await portal.row('Shop 🛒').click();
  await portal.at(own);
  await portal.open(`${own}/settings`);
  await portal.link('Delete this application').click();
  await expect(portal.page.getByText('Its keys stop working at once')).toBeVisible();
  await portal.button('Delete this application').click();
  await portal.on('/applications');
  await expect(portal.page.getByText('The application is deleted.')).toBeVisible();
  await expect(portal.row(reference)).toHaveCount(0);
  await portal.createApplication();
});
