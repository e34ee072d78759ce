import { randomInt } from 'node:crypto';
import { expect, test } from '../support/test.js';

/** Returns a prefix that no other test uses, neither by itself nor in a number. */
function newPrefix(): string {
  return `999${randomInt(100_000, 1_000_000)}`;
}

test('staff set prices from a time on, and customers see them', async ({
  portal,
  anotherBrowser,
  server,
}) => {
  const customer = await anotherBrowser();
  const { key } = await customer.customer();
  await portal.staff();
  await portal.open('/support');
  await portal.link('Prices').click();
  await portal.at('/support/prices');
  await portal.hydrated();

  const prefix = newPrefix();
  const number = `${prefix}123456`;
  const page = portal.page;
  await page.getByLabel('Prefix', { exact: true }).fill(prefix);
  await page.getByLabel('Price', { exact: true }).fill('0.31');
  await portal.button('Set price').click();
  await portal.at(/^\/support\/confirm\?/);
  const change = portal.fact(`Price of numbers beginning with ${prefix}`);
  await expect(change).toHaveText('0.25 → 0.31 USD per page (factor 1.24)');
  await portal.confirms('Set price');
  await portal.on('/support/prices');
  const inForce = page.getByRole('region', { name: 'Prices in force' });
  const row = inForce.getByRole('row').filter({ hasText: `beginning with ${prefix}` });
  await expect(row).toContainText('0.31');

  await page.getByLabel('Number', { exact: true }).fill(number);
  await portal.button('Look up').click();
  await expect(page.getByRole('status').filter({ hasText: `prefix_${prefix}` })).toContainText(
    '0.31 USD',
  );
  const sent = await server.send(key, number, 'What does it cost');
  expect(sent.body).toMatchObject({ cost: 0.31 });

  const year = randomInt(2100, 2999);
  await page.getByLabel('Local numbers').fill('0.06');
  await page.getByLabel('International numbers').fill('0.3');
  await page.getByLabel('Base prices from (UTC)').fill(`${year}-03-04T05:06`);
  await portal.button('Set base prices').click();
  await portal.confirms('Set base prices');
  await portal.on('/support/prices');
  const later = page.getByRole('region', { name: 'Prices that are set for later' });
  await expect(later).toContainText(`${year}-03-04`);
  const history = page.getByRole('region', { name: 'History of prices' });
  await expect(history).toContainText('Base prices: local 0.06, international 0.30 USD');

  await portal.link('Undo').click();
  await portal.confirms('Cancel the change');
  await portal.on('/support/prices');
  await expect(later.filter({ hasText: `${year}-03-04` })).toHaveCount(0);

  await customer.open('/docs');
  const seen = customer.page.getByRole('region', { name: 'Prices in force' });
  await expect(seen).toContainText(`International, beginning with ${prefix}`);
  const api = await server.api(`prices/${key}`, { number });
  expect(api.body['price']).toEqual({ per_page: 0.31, rule: `prefix_${prefix}` });

  await page.getByLabel('Prefix', { exact: true }).fill(prefix);
  await portal.button('Remove price').click();
  await portal.confirms('Remove price');
  await portal.on('/support/prices');
  await expect(row).toHaveCount(0);
  await expect(history).toContainText(`Prefix ${prefix}: removed`);
});

test('invalid prices are refused, and the fields keep their text', async ({ portal }) => {
  await portal.staff();
  await portal.open('/support/prices');
  const { page } = portal;
  const prefix = page.getByLabel('Prefix', { exact: true });
  const price = page.getByLabel('Price', { exact: true });
  const from = page.getByLabel('Prefix from (UTC)');
  for (const [digits, amount, time, sentence] of [
    ['abc', '0.3', '', 'A prefix is 1 to 15 digits'],
    ['99977', 'much', '', 'A price is an amount like 0.05'],
    ['99977', '0.01', '', 'prefixes must cost more'],
    ['99977', '0,3', '', 'without commas, spaces, an exponent or a currency sign'],
    ['99977', '0.3', '2020-01-01T00:00', 'can\'t begin in the past'],
  ] as const) {
    await prefix.fill(digits);
    await price.fill(amount);
    await from.fill(time);
    await portal.button('Set price').click();
    await expect(portal.alert(sentence)).toBeVisible();
    await expect(prefix).toHaveValue(digits);
    await expect(price).toHaveValue(amount);
  }
});

test('a price that is far off has to be typed twice', async ({ portal }) => {
  await portal.staff();
  await portal.open('/support/prices');
  const { page } = portal;
  await page.getByLabel('Prefix', { exact: true }).fill(newPrefix());
  await page.getByLabel('Price', { exact: true }).fill('31');
  await portal.button('Set price').click();
  await portal.at(/^\/support\/confirm\?/);
  await portal.hydrated();
  await page.getByLabel('New price again').fill('0.31');
  await portal.button('Set price').click();
  await expect(portal.alert("This isn't the new price")).toBeVisible();
  await portal.link('Back').click();
  await portal.at('/support/prices');
});

test('staff see margins by day, prefix and application', async ({ portal }) => {
  await portal.staff();
  await portal.open('/support');
  await portal.link('Margin').click();
  await portal.at('/support/margin');
  await portal.hydrated();
  await expect(portal.page.getByRole('region', { name: 'Sum of all days' })).toBeVisible();
  await portal.page.getByLabel('From (UTC)').fill('2026-02-01');
  await portal.page.getByLabel('To (UTC)').fill('2026-01-01');
  await portal.button('Show').click();
  await expect(portal.alert('Choose a first day')).toBeVisible();
});
