import { readFileSync } from 'node:fs';
import { expect, test } from '../support/test.js';

test('a statement shows a month by days, and each day on request', async ({
  portal,
  server,
}) => {
  const { key, reference } = await portal.customer();
  for (let n = 1; n <= 30; n += 1) await server.send(key, `5800${1000 + n}`, `Message ${n}`);
  await portal.open(`/applications/${reference}/statement`);
  const today = new Date().toISOString().slice(0, 10);

  await expect(portal.main.getByText('Closing balance')).toBeVisible();
  const days = portal.page.getByRole('region', { name: 'Days' });
  const day = days.getByRole('row').filter({ hasText: today });
  await expect(day).toContainText('1.50');
  await expect(portal.link('All transfers of this day')).toBeVisible();

  await day.getByRole('link', { name: today }).click();
  await portal.at(`/applications/${reference}/statement?kind=all&from=${today}&to=${today}`);
  await expect(portal.row('Charge')).toHaveCount(25);
  await portal.link('Older transfers').click();
  await expect(portal.row('Deposit')).toHaveCount(1);
  await portal.link('Newer transfers').click();
  await expect(portal.row('Charge')).toHaveCount(25);

  // One click shows the deposit, however many charges there are.
  await portal.link('Deposits').click();
  await expect(portal.row('Deposit')).toHaveCount(1);
  await expect(portal.row('Charge')).toHaveCount(0);
});

test('a statement is downloaded as CSV, and its amounts add up to the balance', async ({
  portal,
  server,
}) => {
  const { key, reference } = await portal.customer();
  const sent = await server.send(key, '58001234', 'For the file');
  await portal.open(`/applications/${reference}/statement?kind=all`);
  const download = portal.page.waitForEvent('download');
  await portal.link('Download CSV').click();
  const file = await download;
  expect(file.suggestedFilename()).toMatch(new RegExp(`^statement-${reference}_.*\\.csv$`));
  const lines = readFileSync(await file.path(), 'utf8').trimEnd().split('\r\n');
  expect(lines[0]).toBe('created_at,type,reference,amount,balance,currency');
  expect(lines[1]).toContain(`,charge,${String(sent.body['transid'])},-`);
  const amounts = lines.slice(1).map((line) => Number(line.split(',')[3]));
  const sum = amounts.reduce((all, one) => all + one, 0);
  expect(sum.toFixed(6)).toBe(Number(sent.body['balance']).toFixed(6));
});

test('invalid days of a statement are named, and months without transfers say so', async ({
  portal,
  watch,
}) => {
  watch.expects(/40[04]/);
  const { reference } = await portal.customer();
  const page = `/applications/${reference}/statement`;
  const refused = await portal.page.goto(`${page}?kind=all&from=2026-10-02&to=2026-10-01`);
  expect(refused?.status()).toBe(400);
  await expect(portal.main.getByRole('alert')).toContainText('To is a day before From.');
  const to = portal.page.getByLabel('To (UTC)');
  await expect(to).toHaveAccessibleDescription(/^To is a day before From/);
  await portal.open(`${page}?month=2020-01`);
  await expect(portal.main.getByText('There are no transfers in this month.')).toBeVisible();
  await portal.link('Newer: February 2020').click();
  await portal.at(`${page}?month=2020-02`);
  const answer = await portal.page.goto(`${page}?month=soon`);
  expect(answer?.status()).toBe(404);
});
