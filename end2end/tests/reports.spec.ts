import { readFileSync } from 'node:fs';
import { expect, test } from '../support/test.js';
import { ZONE, local } from '../support/times.js';

test('filters are in the address and select the messages', async ({ portal, server }) => {
  const { key } = await portal.customer();
  const transids = [];
  for (const number of ['00000001', '00000002', '58777001']) {
    const sent = await server.send(key, number, `To ${number}`);
    transids.push(sent.body['transid']);
  }
  for (const transid of transids) await portal.settled(key, transid);

  await portal.open('/reports');
  for (const number of ['00000001', '00000002', '58777001']) {
    await expect(portal.row(number)).toHaveCount(1);
  }

  await portal.form('Apply filters').getByLabel('Number').fill('58777001');
  await portal.button('Apply filters').click();
  await expect(portal.row('00000001')).toHaveCount(0);
  await expect(portal.row('58777001')).toHaveCount(1);
  expect(new URL(portal.page.url()).searchParams.get('number')).toBe('58777001');

  // The filters depend only on the address.
  await portal.reload();
  await expect(portal.form('Apply filters').getByLabel('Number')).toHaveValue('58777001');
  await expect(portal.row('58777001')).toHaveCount(1);

  await portal.open('/reports?status=failed');
  await expect(portal.row('00000002')).toHaveCount(1);
  await expect(portal.row('58777001')).toHaveCount(0);
  await expect(portal.form('Apply filters').getByLabel('Status')).toHaveValue('failed');

  // Filters can be removed one by one.
  await portal.open('/reports?status=failed&number=00 00-0002');
  await expect(portal.row('00000002')).toHaveCount(1);
  const chips = portal.page.getByRole('list', { name: 'Filters in use' });
  await expect(chips.getByRole('link')).toHaveCount(2);
  await portal.link('Remove filter Number: 00 00-0002').click();
  await portal.at('/reports?status=failed');
  // Until the list is loaded, the links still contain the removed filter.
  await expect(chips.getByRole('link')).toHaveCount(1);
  await portal.link('Remove filter Status: failed').click();
  await portal.at('/reports');
  await expect(chips).toHaveCount(0);
  await portal.link('7 days').click();
  await expect(portal.link('7 days')).toHaveAttribute('aria-current', 'page');
  await expect(portal.row('58777001')).toHaveCount(1);
});

test('live and test messages are distinguished', async ({ portal, server }) => {
  const { key, testKey } = await portal.customer();
  for (const [from, number] of [[key, '58777021'], [testKey, '58777022']] as const) {
    const sent = await server.send(from, number, 'Live or not');
    await portal.settled(from, sent.body['transid']);
  }
  await portal.open('/reports');
  await expect(portal.row('58777021')).toHaveCount(1);
  await expect(portal.row('58777022')).toContainText('0.05 test');
  await expect(portal.page.getByRole('img', { name: '1 message by day' })).toBeVisible();
  await portal.openFilters();
  await portal.form('Apply filters').getByLabel('Key').selectOption('test');
  await portal.button('Apply filters').click();
  await expect(portal.row('58777021')).toHaveCount(0);
  await expect(portal.row('58777022')).toHaveCount(1);
  await expect(portal.main).toContainText('test messages by day sent');
});

test('columns are chosen by links and stay in the address', async ({ portal, server }) => {
  const { key } = await portal.customer();
  const sent = await server.send(key, '58777031', 'Columns');
  await portal.settled(key, sent.body['transid']);
  const heading = (name: string) =>
    portal.page.getByRole('region', { name: 'Sent messages' }).getByRole('columnheader', { name });

  await portal.open('/reports?number=58777031');
  await expect(heading('Segments')).toBeVisible();
  await expect(heading('Sender')).toHaveCount(0);
  await portal.page.getByText('Choose columns').click();
  await portal.link('Hide column Segments').click();
  await expect(heading('Segments')).toHaveCount(0);
  await portal.link('Show column Sender').click();
  await expect(heading('Sender')).toBeVisible();

  // Applying filters keeps the columns. The columns depend only on the address.
  await portal.openFilters();
  await portal.form('Apply filters').getByLabel('Status').selectOption('delivered');
  await portal.button('Apply filters').click();
  await portal.at(/status=delivered/);
  expect(new URL(portal.page.url()).searchParams.get('columns')).toBe(
    'time.number.message.status.sender.pages.cost',
  );
  await portal.reload();
  await expect(heading('Sender')).toBeVisible();
  await expect(heading('Segments')).toHaveCount(0);

  await portal.link('Show the usual columns').click();
  await expect(heading('Segments')).toBeVisible();
  await expect(heading('Sender')).toHaveCount(0);
  expect(new URL(portal.page.url()).searchParams.get('columns')).toBeNull();

  // A list can show only the IDs.
  await portal.open('/reports?columns=transid');
  await expect(heading('Transaction ID')).toBeVisible();
  await expect(heading('Number')).toHaveCount(0);

  // On a phone, the first message is within the first screen, and its row is a link.
  await portal.page.setViewportSize({ width: 375, height: 812 });
  await portal.open('/reports');
  const box = await portal.row('58777031').boundingBox();
  expect(box!.y).toBeLessThan(812);
  // The chart has its place before the list, for the eye and the keyboard, once it is asked for.
  const chart = portal.page.getByRole('img', { name: /by day/ });
  await expect(chart).toBeHidden();
  const shown = portal.page.getByLabel('Show the chart');
  await shown.focus();
  await portal.page.keyboard.press('Space');
  await expect(chart).toBeVisible();
  // It stays when another kind of chart is chosen there.
  await portal.link('Messages by application').click();
  await portal.at(/by=application/);
  await portal.hydrated();
  await expect(shown).toBeChecked();
  await expect(chart).toBeVisible();
  const [above, below] = [await chart.boundingBox(), await portal.row('58777031').boundingBox()];
  expect(above!.y).toBeLessThan(below!.y);
  await portal.row('58777031').click({ position: { x: 5, y: 5 } });
  await portal.at(/^\/reports\/m_/);
});

test('the list follows messages until they are final', async ({ portal, server, scripts }) => {
  test.skip(!scripts, 'without scripts there is a link that reloads the page');
  test.setTimeout(90_000);
  const { key } = await portal.customer();
  const sent = await server.send(key, '00000005', 'In half a minute');
  expect(sent.status).toBe(200);
  await portal.open('/reports');
  await expect(portal.row('In half a minute')).not.toContainText('delivered');
  await expect(portal.link('Reload')).toBeVisible();
  await expect(portal.row('In half a minute')).toContainText('delivered', { timeout: 60_000 });
  await expect(portal.link('Reload')).toHaveCount(0);
});

test('a message is shown as text and never as HTML', async ({ portal, server }) => {
  const { key } = await portal.customer();
  const text = '<img src=x onerror="document.title=1"> & <script>alert(1)</script> 😀';
  const sent = await server.send(key, '58777002', text);
  await portal.settled(key, sent.body['transid']);
  for (const path of ['/reports', `/reports/${sent.body['transid']}`]) {
    await portal.open(path);
    await expect(portal.main).toContainText(text);
    await expect(portal.main.locator('img, script')).toHaveCount(0);
  }
});

test('a message has a page with its timeline and its charge', async ({ portal, server }) => {
  const { key, reference } = await portal.customer();
  const sent = await server.send(key, '27820000001', 'x'.repeat(161));
  expect(sent.body).toMatchObject({ pages: 2, cost: 0.5 });
  await portal.settled(key, sent.body['transid']);
  await portal.open(`/reports/${sent.body['transid']}`);
  for (const word of ['27820000001', 'international', 'queued', 'submitted', 'delivered', '0.5']) {
    await expect(portal.main).toContainText(word);
  }
  await expect(portal.main).toContainText('Accepted and charged');
  await expect(portal.main).toContainText('It arrived on the phone.');
  await expect(portal.fact('Paid')).toHaveText('0.50 USD');
  await expect(portal.main).toContainText('2 segments in GSM-7');
  await portal.fact('Application').getByRole('link').click();
  await portal.at(`/applications/${reference}`);
});

test('a text shows where it is cut and why it is in UCS-2', async ({ portal, server }) => {
  const { key } = await portal.customer();
  const text = `It’s ${'long '.repeat(20)}`.trim();
  const sent = await server.send(key, '58777031', text);
  await portal.open(`/reports/${sent.body['transid']}`);
  // The marks aren't part of the text.
  await expect(portal.page.locator('blockquote')).toHaveText(text);
  await expect(portal.page.locator('blockquote mark')).toHaveText('’');
  await expect(portal.page.locator('[data-cut="segment 1 ends"]')).toBeVisible();
  await expect(portal.main).toContainText('UCS-2 is used because “’” (U+2019)');
});

test('a sentence says why a message was not delivered', async ({ portal, server }) => {
  const { key } = await portal.customer();
  const numbers = {
    '00000002': 'The phone was off or out of reach.',
    '00000003': "The phone wasn't reached in time.",
    '00000004': 'The carrier refused the message.',
  };
  for (const [number, sentence] of Object.entries(numbers)) {
    const sent = await server.send(key, number, 'x'.repeat(161));
    const { error } = await portal.settled(key, sent.body['transid']);
    await portal.open(`/reports/${sent.body['transid']}`);
    await expect(portal.fact('Status')).toContainText(sentence);
    await expect(portal.fact('Status')).toContainText(error);
    await expect(portal.fact('Length')).toHaveText('2 pages, 2 segments');
    await expect(portal.heading('What to do')).toBeVisible();
    await portal.open('/reports');
    await expect(portal.row(number)).toContainText(sentence);
    await expect(portal.row(number).locator('[data-label="Segments"]')).toHaveText('2');
  }
});

test('the charge of a message that no carrier accepted is released', async ({ portal, server }) => {
  const { key, reference } = await portal.customer();
  const sent = await server.send(key, '00000004', 'Refused by the carrier');
  expect(sent.body).toMatchObject({ code: 200, balance: 9.95 });
  expect(await portal.settled(key, sent.body['transid'])).toMatchObject({ status: 'rejected' });
  await portal.open('/reports');
  await expect(portal.row('00000004').locator('[data-label="Cost"]')).toHaveText('0.00');
  await portal.row('00000004').getByRole('link').click();
  await expect(portal.fact('Charged')).toHaveText('0.05 USD');
  await expect(portal.fact('Released')).toHaveText('0.05 USD');
  await expect(portal.fact('Paid')).toHaveText('0.00 USD');
  await portal.open(`/applications/${reference}`);
  await expect(portal.fact('Balance')).toContainText('10.00 USD');
  await portal.open(`/applications/${reference}/statement`);
  await expect(portal.row('Release')).toContainText('+0.05');
});

test('the chart has a table with the same figures', async ({ portal, server, scripts }) => {
  const { key, reference } = await portal.customer();
  await portal.open('/reports');
  await expect(portal.main).toContainText('No messages in these days.');

  const days = new Map<string, number>();
  for (const number of ['00000001', '58777005', '00000002']) {
    const sent = await server.send(key, number, 'To be counted');
    const report = await portal.settled(key, sent.body['transid']);
    const day = local(report['created_at'], scripts ? ZONE : 'UTC').slice(0, 10);
    days.set(day, (days.get(day) ?? 0) + 1);
  }
  await portal.open('/reports');
  const chart = portal.page.getByRole('img', { name: '3 messages by day and status' });
  await expect(chart).toBeVisible();
  await expect(portal.row('delivered').filter({ hasText: /^delivered\s*2$/ })).toHaveCount(1);
  await expect(portal.row('failed').filter({ hasText: /^failed\s*1$/ })).toHaveCount(1);
  await portal.page.getByText('The chart as a table').click();
  const table = portal.page.getByRole('region', { name: 'Messages by day and status' });
  for (const [day, count] of days) {
    const row = table.getByRole('row').filter({ hasText: day });
    await expect(row.getByRole('cell').last()).toHaveText(String(count));
  }
  await expect(portal.main).toContainText('Delivery rate: 66.6 %');
  const [day] = days.keys();
  await table.getByRole('link', { name: day! }).click();
  await expect(portal.form('Apply filters').getByLabel(/^From/)).toHaveValue(day!);
  await expect(portal.form('Apply filters').getByLabel('Key')).toHaveValue('live');
  // A single day is shown by hour, and an hour links to its messages.
  await expect(portal.page.getByRole('img', { name: 'by hour and status' })).toBeVisible();
  await portal.link('Messages by application').click();
  await expect(portal.page.getByRole('img', { name: 'by hour and application' })).toBeVisible();
  await portal.link('Cost by application').click();
  await expect(portal.page.getByRole('img', { name: / USD by hour/ })).toBeVisible();
  await portal.page.getByText('The chart as a table').click();
  const hours = portal.page.getByRole('region', { name: 'Cost by hour and application' });
  await hours.getByRole('link', { name: day! }).last().click();
  await expect(portal.link(`Remove filter From: ${day!}`)).toBeVisible();
  const hour = portal.page.getByRole('link', { name: /^Remove filter Hour: / });
  await expect(hour).toBeVisible();
  await portal.openFilters();
  await portal.form('Apply filters').getByLabel('Status').selectOption('delivered');
  await portal.button('Apply filters').click();
  await expect(portal.link('Remove filter Status: delivered')).toBeVisible();
  await expect(hour).toBeVisible();
  await portal.link('Delivery times').click();
  await expect(portal.main).toContainText('half of the delivered messages arrived within');
  const times = portal.page.getByRole('region', { name: 'Delivery times' });
  await expect(times.getByRole('row').last()).toContainText('100.0 %');

  await portal.open(`/reports?application=${reference}&status=failed`);
  await expect(portal.page.getByRole('img', { name: '1 message by day and status' })).toBeVisible();
  await portal.link('Delivery times').click();
  await expect(times.getByRole('row').last()).toContainText('100.0 %');
  await portal.open('/reports?status=queued&by=application');
  await expect(portal.main).toContainText('Messages under way are counted by status and by day');
  await expect(portal.link('Messages by status')).toBeVisible();
  await portal.open('/reports?from=2026-01-01&to=2026-01-31');
  await expect(portal.main).toContainText('2026-01-01 to 2026-01-31');
  await expect(portal.main).toContainText('No messages in these days.');
});

test('an invalid filter is answered with a sentence', async ({ portal, watch }) => {
  watch.expects(/400/);
  await portal.register();
  await portal.open('/reports?number=12');
  await expect(portal.alert('A number has 4 to 15 digits')).toBeVisible();
  await portal.open('/reports?from=2026-11-22&to=2026-11-21');
  await expect(portal.alert('To is a day before From.')).toBeVisible();
  await expect(portal.main).not.toContainText('No message fits');
});

test('more messages than one page holds are listed once each', async ({ portal, server }) => {
  await portal.register();
  const { testKey } = await portal.createApplication();
  const numbers = Array.from({ length: 55 }, (_, i) => String(58_300_000 + i));
  const send = (number: string) => server.send(testKey, number, 'One of many');
  const sent = await Promise.all(numbers.map(send));
  expect(sent.every(({ body }) => body['code'] === 200)).toBe(true);

  const found: string[] = [];
  const rows = portal.page.getByRole('region', { name: 'Sent messages' }).locator('tbody tr');
  await portal.open('/reports');
  await expect(rows).toHaveCount(50);
  found.push(...(await rows.allInnerTexts()));
  await expect(portal.main).toContainText('55 messages.');
  await portal.link('Older messages').click();
  await expect(rows).toHaveCount(5);
  found.push(...(await rows.allInnerTexts()));
  const shown = found.map((text) => text.match(/583000\d\d/)?.[0]);
  expect(shown.toSorted()).toEqual(numbers);
  await expect(portal.link('Older messages')).toHaveCount(0);
  await portal.link('Newer messages').click();
  await expect(rows).toHaveCount(50);
  await expect(portal.link('Newer messages')).toHaveCount(0);
});

test('the listed messages can be downloaded as CSV', async ({ portal, server }) => {
  const { key } = await portal.customer();
  const text = 'Commas, "quotes", =1+1\nand a second line';
  const transids = [];
  for (const number of ['58777003', '58777004']) {
    const sent = await server.send(key, number, text);
    transids.push(sent.body['transid'] as string);
  }
  for (const transid of transids) await portal.settled(key, transid);
  await portal.open('/reports?number=58777003');
  const downloads = portal.page.waitForEvent('download');
  await portal.link('Download CSV').click();
  const download = await downloads;
  expect(download.suggestedFilename()).toMatch(/\.csv$/);
  const table = readFileSync(await download.path(), 'utf8');
  expect(table.split('\r\n')[0]).toContain('transid');
  expect(table.split('\r\n')[0]).toContain('pages,segments,');
  expect(table).toContain(transids[0]);
  expect(table).not.toContain(transids[1]);
  expect(table).toContain('Commas, ""quotes"", =1+1\nand a second line');
});
