import { expect, test } from '../support/test.js';

/** A timeout for a message to 00000005, which is delivered after 30 seconds. */
const SLOW_MS = 50_000;

test('the page of a batch follows it until it is done', async ({ portal, server, scripts }) => {
  test.setTimeout(120_000);
  const { key } = await portal.customer();
  const sent = await server.upload(key, [
    ['00000001', 'At once'],
    ['00000005', 'In half a minute'],
  ], { requestid: 'slow-one' });
  expect(sent).toMatchObject({ status: 200, body: { rows: 2, cost: 0.1 } });
  const { batchid } = sent.body as { batchid: string };

  await portal.open('/reports');
  await expect(portal.row('slow-one')).toContainText(batchid);
  await expect(portal.row('slow-one')).toContainText('0.1');
  await portal.link(batchid).click();
  await portal.at(`/reports/${batchid}`);
  await expect(portal.heading('Batch')).toBeVisible();
  await expect(portal.fact('Cost')).toHaveText('0.10 USD');
  await expect(portal.fact('Request ID')).toHaveText('slow-one');

  if (scripts) {
    // A reload would remove this attribute.
    await portal.page.evaluate(() => document.documentElement.setAttribute('data-same', ''));
    await expect(portal.fact('Progress')).toContainText('1 of 2');
    await expect(portal.page.getByRole('status').first()).toHaveText(/^At least 50 percent/);
    await expect(portal.link('Reload')).toBeVisible();
    await expect(portal.fact('Status')).toHaveText('done', { timeout: SLOW_MS });
    const status = portal.page.getByRole('status').first();
    await expect(status).toHaveText('The batch is done: 2 of 2 delivered.');
    await expect(portal.page.locator('html[data-same]')).toBeAttached();
  } else {
    await expect(portal.fact('Status')).not.toHaveText('done');
    await portal.batchDone(key, batchid, SLOW_MS);
    await expect(portal.fact('Status')).not.toHaveText('done');
    await portal.link('Reload').click();
    await expect(portal.fact('Status')).toHaveText('done');
  }
  await expect(portal.fact('Progress')).toContainText('2 of 2 completed');
  await expect(portal.row('delivered')).toContainText('2');
  await expect(portal.fact(scripts ? 'Done' : 'Done (UTC)')).toBeVisible();
  await expect(portal.link('Reload')).toHaveCount(0);
});

test('the pages of batch, messages and statement link to each other', async ({
  portal,
  server,
}) => {
  const { key, reference } = await portal.customer();
  const batchid = await portal.uploaded(key, [
    ['58777011', 'One of the batch'],
    ['00000002', 'Another one, with a comma'],
  ]);
  await server.send(key, '58777012', 'Not of the batch');

  await portal.open(`/reports/${batchid}`);
  await expect(portal.row('delivered')).toContainText('1');
  await expect(portal.row('failed')).toContainText('1');
  await portal.link('Messages of this batch').click();
  await portal.at(`/reports?batchid=${batchid}`);
  await expect(portal.form('Apply filters').getByLabel('Batch ID')).toHaveValue(batchid);
  await expect(portal.row('58777011')).toHaveCount(1);
  await expect(portal.row('Another one, with a comma')).toHaveCount(1);
  await expect(portal.row('58777012')).toHaveCount(0);
  await expect(portal.link(batchid)).toBeVisible();

  await portal.row('58777011').getByRole('link').click();
  await expect(portal.fact('Batch')).toHaveText(batchid);
  await portal.fact('Batch').getByRole('link').click();
  await portal.row('failed').getByRole('link').click();
  await portal.at(`/reports?batchid=${batchid}&status=failed`);
  await expect(portal.row('Another one, with a comma')).toHaveCount(1);
  await expect(portal.row('58777011')).toHaveCount(0);
  await portal.open(`/applications/${reference}/statement`);
  await expect(portal.row(batchid)).toContainText('−0.10');
  await portal.link(batchid).click();
  await portal.at(`/reports/${batchid}`);
});

test('batches are listed, paged and filtered', async ({ portal }) => {
  const { key, testKey } = await portal.customer();
  await portal.open('/reports');
  await expect(portal.main).toContainText('No file was uploaded yet.');
  await portal.main.getByRole('link', { name: 'the API reference' }).click();
  await portal.at('/docs');

  const tried = await portal.uploaded(testKey, [['00000001', 'With the test key']]);
  const others = [];
  for (let i = 0; i < 5; i += 1) {
    const requestid = `request-${i}`;
    others.push(await portal.uploaded(key, [['00000001', `Batch ${i}`]], { requestid }));
  }
  await portal.open('/reports');
  const listed = portal.page.getByRole('region', { name: 'Uploaded batches' }).locator('tbody tr');
  await expect(listed).toHaveCount(5);
  await expect(listed.first()).toContainText(others[4]!);
  await expect(listed.first()).toContainText('done');
  await portal.link('Older batches').click();
  await expect(listed).toHaveCount(1);
  await expect(listed).toContainText(tried);
  await expect(listed.getByText('test', { exact: true })).toBeVisible();
  await expect(portal.link('Older batches')).toHaveCount(0);
  await portal.link('Newer batches').click();
  await expect(listed).toHaveCount(5);

  await portal.openFilters();

  await portal.form('Apply filters').getByLabel('Request ID').fill('request-3');
  await portal.button('Apply filters').click();
  await expect(listed).toHaveCount(1);
  await expect(listed).toContainText(others[3]!);

  await portal.open('/reports?to=2026-01-31');
  await expect(portal.main).toContainText('No batch fits these filters.');
});

test("another account's batch is not found", async ({ portal, anotherBrowser, watch }) => {
  watch.expects(/404/);
  const { key } = await portal.customer();
  const batchid = await portal.uploaded(key, [['00000001', 'Nobody else sees it']]);
  const other = await anotherBrowser();
  await other.register();
  await other.open(`/reports/${batchid}`);
  await expect(other.heading('Nothing here')).toBeVisible();
  const events = await other.page.request.get(`/reports/${batchid}/events`);
  expect(events.status()).toBe(404);
});
