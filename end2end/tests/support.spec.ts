import { expect, test } from '../support/test.js';

test('staff drain a carrier and resume it', async ({ portal, server, scripts, anotherBrowser }) => {
  const customer = await anotherBrowser();
  const { key } = await customer.customer();
  await portal.staff();
  await portal.link('Support').click();
  await portal.at('/support');
  await portal.link('Carriers').click();
  await portal.at('/support/carriers');
  await expect(portal.heading('sandbox')).toBeVisible();
  await expect(portal.fact('State')).toHaveText('up');
  await expect(portal.fact('Age of the oldest')).toHaveText('none waits');
  const connections = portal.page.getByRole('region', { name: 'Connections of sandbox' });
  await expect(connections.locator('tbody tr')).toHaveCount(1);
  await expect(connections).toContainText('bound');
  await expect(connections).toContainText(/0 of \d+/);

  await portal.button('Drain sandbox').click();
  await expect(portal.main.getByText('No other carrier takes messages now.')).toBeVisible();
  await portal.confirms('Drain');
  await expect(portal.fact('State')).toHaveText(/^drained since/);
  await expect(portal.main.getByText('Carrier sandbox is drained.')).toBeVisible();
  if (scripts) {
    await expect(portal.page.getByText('sandbox is drained.', { exact: true })).toBeAttached();
  }
  await expect(portal.button('Drain sandbox')).toHaveCount(0);

  // The worker notices the drain a little later.
  let transid = '';
  const waiting = async () => {
    const sent = await server.send(key, '00000001', 'Waits for a drained carrier');
    transid = sent.body['transid'];
    return (await server.staff('carrier', 'list'))[0].waiting as number;
  };
  await expect.poll(waiting, 'messages that wait').toBeGreaterThan(2);
  // With scripts, the page updates itself.
  if (!scripts) await portal.reload();
  await expect(portal.fact('Waiting messages')).toHaveText(/^[1-9]\d*$/);
  await expect(portal.fact('Age of the oldest')).toHaveText(/^\d+ s$/);

  await portal.button('Resume sandbox').click();
  await portal.confirms('Resume');
  await portal.on('/support/carriers');
  await expect(portal.fact('State')).toHaveText('up');
  expect(await portal.settled(key, transid)).toMatchObject({ status: 'delivered' });
  await expect(portal.button('Drain sandbox')).toBeVisible();

  // The page also shows a change by the command line.
  await server.staff('carrier', 'drain', 'sandbox', '--yes');
  if (!scripts) await portal.reload();
  await expect(portal.fact('State')).toHaveText(/^drained since/);
  await server.staff('carrier', 'resume', 'sandbox');
  if (!scripts) await portal.reload();
  await expect(portal.fact('State')).toHaveText('up');
});

test('only staff can see the support pages', async ({ portal, server, watch }) => {
  watch.expects(/404/);
  await portal.open('/support/carriers');
  await portal.at('/login?next=%2Fsupport%2Fcarriers');

  await portal.register();
  await expect(portal.link('Security')).toBeVisible();
  await expect(portal.link('Support')).toHaveCount(0);
  for (const path of ['/support', '/support/carriers']) {
    await portal.open(path);
    await expect(portal.heading('Nothing here')).toBeVisible();
    await expect(portal.main).not.toContainText('sandbox');
  }
  const { request } = portal.page;
  expect((await request.get('/support/carriers')).status()).toBe(404);
  expect((await request.get('/support/carriers/events')).status()).toBe(404);
  for (const path of ['/fn/carriers', '/fn/support']) {
    expect(await (await request.get(path)).text()).not.toContain('sandbox');
  }
  const drain = { act: 'drain', subject: 'sandbox', seen: 'in use, the last one' };
  await request.post('/fn/act', { form: drain });
  expect((await server.staff('carrier', 'list'))[0].drained_at).toBeNull();
});
