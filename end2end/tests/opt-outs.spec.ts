import { expect, test } from '../support/test.js';
import type { Portal } from '../support/portal.js';

async function importFile(portal: Portal, rows: string): Promise<void> {
  await portal.page.getByLabel('File of numbers').setInputFiles({
    name: 'numbers.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(rows),
  });
  await portal.button('Import file').click();
  await portal.at(/\/optouts(\?|$)/);
  await portal.hydrated();
}

test('opt-outs are added, found and removed', async ({ portal, server }) => {
  const { key, reference } = await portal.customer();
  await portal.open(`/applications/${reference}`);
  await portal.link('Opt-outs').click();
  await portal.hydrated();
  await expect(portal.main).toContainText('No number is on the list.');

  const add = portal.form('Add number');
  await add.getByLabel('Number').fill('712');
  await portal.button('Add number').click();
  await expect(portal.main).toContainText('A number has 4 to 15 digits.');
  for (const number of ['7123-4568', '+49 151 12345678', '+26671234568']) {
    await portal.open(`/applications/${reference}/optouts`);
    await add.getByLabel('Number').fill(number);
    await portal.button('Add number').click();
    await expect(portal.main).toContainText('The number is on the list.');
  }
  await expect(portal.row('+26671234568')).toHaveCount(1);
  await expect(portal.row('+4915112345678')).toContainText('You');
  const refused = await server.send(key, '71234568', 'Hi');
  expect(refused).toMatchObject({ status: 403, body: { reason: 'opted_out' } });

  const search = portal.page.getByRole('search', { name: 'Search opt-outs' });
  await search.getByLabel('Number').fill('71234568');
  await portal.button('Search').click();
  await portal.at(/number=71234568/);
  await portal.hydrated();
  await expect(portal.row('+4915112345678')).toHaveCount(0);
  await portal.row('+26671234568').getByRole('link', { name: 'Remove' }).click();
  await expect(portal.heading('Remove +26671234568?')).toBeVisible();
  await portal.hydrated();
  await portal.button('Remove opt-out').click();
  await expect(portal.main).toContainText("The number isn't on the list any more.");
  await expect(portal.row('+26671234568')).toHaveCount(0);
  await expect(portal.row('+4915112345678')).toHaveCount(1);
  expect(await server.send(key, '71234568', 'Hi')).toMatchObject({ status: 200 });

  await portal.open(`/applications/${reference}`);
  await expect(portal.row('The opt-out of •••••')).not.toHaveCount(0);
  await expect(portal.row('was removed.')).toContainText('568');
});

test('a file of opt-outs is imported, or its bad lines are shown', async ({ portal, server }) => {
  const { reference, testKey } = await portal.customer();
  await portal.open(`/applications/${reference}/optouts`);
  await portal.link('Test key').click();
  await portal.at(/key=test/);
  await portal.hydrated();

  await importFile(portal, '71234568\n\nnumber\n71234569\n');
  await expect(portal.alert('2 lines of the file are bad')).toBeVisible();
  await expect(portal.row('The line is blank')).toContainText('2');
  await expect(portal.main).toContainText('No number is on the list.');
  // The outcome is shown once.
  await portal.reload();
  await expect(portal.alert('2 lines of the file are bad')).toHaveCount(0);

  await importFile(portal, '71234568\r\n+26671234569\r\n71234568\r\n');
  await expect(portal.main).toContainText('The file has 3 numbers. 2 numbers are new on the list.');
  await expect(portal.row('+26671234569')).toHaveCount(1);
  expect(await server.send(testKey, '71234569', 'Hi')).toMatchObject({ status: 403 });
  await portal.link('API key').click();
  await portal.hydrated();
  await expect(portal.main).toContainText('No number is on the list.');
});
