import { expect, test } from '../support/test.js';
import type { Portal } from '../support/portal.js';

/** Fills in the counter. Without scripts, also submits it. */
async function count(portal: Portal, scripts: boolean, text: string, number: string) {
  const { page } = portal;
  await page.getByLabel('Text to count').fill(text);
  await page.getByLabel('Destination number').fill(number);
  if (scripts) {
    await expect(portal.button('Count')).toBeHidden();
  } else {
    await portal.button('Count').click();
    await expect(page).toHaveURL(/\/docs#counter$/);
    await expect(page.getByLabel('Text to count')).toHaveValue(text);
    await expect(page.getByLabel('Destination number')).toHaveValue(number);
  }
}

test('a text is counted and priced, and nothing is sent', async ({ portal, scripts }) => {
  const { page } = portal;
  const result = page.getByRole('status').last();
  await portal.open('/docs');
  await expect(result).toHaveText('Write a text to see how it is counted.');

  await count(portal, scripts, 'a'.repeat(161), '58 00 19 87');
  await expect(result).toHaveText(
    'Left: 159 characters of this page, 145 places of this segment. ' +
      'Cost: 0.10 USD (2 pages at 0.05) to 58001987, a local number. ' +
      'The API refuses spaces and hyphens: leave them out.',
  );
  await expect(portal.main).toContainText('2 segments in GSM-7');
  await expect(page.locator('[data-cut="segment 1 ends"]')).toHaveCount(1);

  await count(portal, scripts, '\nIt’s\nhere', '+999 123 456');
  await expect(result).toContainText('to +999123456, an international number whose prefix has no');
  await expect(portal.main).toContainText('UCS-2 is used because “’” (U+2019) isn\'t in GSM-7.');
  await expect(portal.main).toContainText('10 characters, 1 page');
  await expect(page.locator('.sms mark')).toHaveText('’');

  await count(portal, scripts, 'Hello', '+266 58001987');
  await expect(result).toContainText('Cost: 0.25 USD (1 page at 0.25) to +26658001987');
  await expect(result).toContainText(
    'Without the country code it is 58001987, a local number in Lesotho (+266), ' +
      'and costs 0.05 USD.',
  );
  const writings = page.getByRole('region', { name: 'What each way of writing a number costs' });
  await expect(writings.getByRole('row', { name: '+26657000001' })).toContainText('0.25');

  await count(portal, scripts, 'مرحبا بك', '58x');
  await expect(result).toContainText('A number has 4 to 15 digits');
  await expect(page.locator('.sms')).toHaveCSS('direction', 'rtl');

  await count(portal, scripts, '😀'.repeat(1600), '58001987');
  await expect(result).toContainText('0.50 USD (10 pages at 0.05)');
  await expect(portal.main).toContainText('49 segments in UCS-2');
  await count(portal, scripts, '😀'.repeat(1601), '58001987');
  await expect(result).toContainText('1,601 characters: 1 character more than 10 pages');
  await expect(page.locator('.sms')).toHaveCount(0);
  await count(portal, scripts, '</textarea><b>&lt;', '');
  await expect(result).toContainText('Give a number to see the cost.');
  await expect(page.locator('.sms')).toHaveText('</textarea><b>&lt;');
});

test('the quick start has the counter too', async ({ portal, scripts }) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  await portal.open(`/applications/${reference}/start`);
  await count(portal, scripts, 'Hello', '58001987');
  const cost = 'Cost: 0.05 USD (1 page at 0.05) to 58001987, a local number.';
  await expect(portal.page.getByRole('status').last()).toContainText(cost);
});

test('a reason of the reference has an address of its own', async ({ portal, scripts }) => {
  const { page } = portal;
  await portal.register();
  const { reference } = await portal.createApplication();
  await portal.open('/reports');
  // A page's link leads to the reference, and so do back and forward.
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API' }).click();
  await portal.at('/docs');
  await portal.hydrated();
  await expect(portal.main).toContainText(`/sms/send/${reference}hk_…`);
  await page.goBack();
  await portal.at('/reports');
  await page.goForward();
  await portal.at('/docs');
  await expect(portal.heading('API reference')).toBeVisible();
  await portal.hydrated();

  const send = page.getByRole('region', { name: 'Parameters of GET /sms/send/<API_KEY>' });
  await expect(send).toContainText('4 to 15 digits');
  await page.getByText('Other answers').first().click();
  await page.getByRole('link', { name: 'insufficient_funds' }).first().click();
  await expect(page).toHaveURL(/\/docs#reason-insufficient_funds$/);
  await expect(page.locator(':target')).toHaveId('reason-insufficient_funds');
  const row = page.getByRole('row').filter({ has: page.locator('#reason-insufficient_funds') });
  await expect(row).toContainText('Deposit with the application\'s reference');
  await expect(row).toBeInViewport();

  if (scripts) {
    // Scripts open a page from the reference. Going back loads the reference again.
    const main = page.getByRole('navigation', { name: 'Main' });
    await main.getByRole('link', { name: 'Security' }).click();
    await portal.at('/devices');
    await page.goBack();
    await expect(portal.heading('API reference')).toBeVisible();
    await expect(page.locator('#codes')).toBeAttached();
  }
});
