import { axeFaults, overflowing } from '../support/faults.js';
import type { Portal } from '../support/portal.js';
import { expect, test } from '../support/test.js';

/** Checks a file, and waits for the verdict. */
async function checkFile(portal: Portal, content: Buffer, verdict: string): Promise<void> {
  await portal.page
    .getByLabel('File', { exact: true })
    .setInputFiles({ name: 'file.csv', mimeType: 'text/csv', buffer: content });
  await portal.button('Check file').click();
  await expect(portal.main).toContainText(verdict);
  await portal.hydrated();
}

test('files are checked before they are uploaded', async ({ portal, server, scripts }) => {
  const { key, reference } = await portal.customer();
  await portal.open(`/applications/${reference}/start`);
  await portal.main.getByRole('link', { name: 'Check a file', exact: true }).last().click();
  await portal.at(/\/check-file$/);
  await portal.hydrated();
  const balance = async () => (await fetch(`${server.url}/sms/balance/${key}`)).json();
  const before = await balance();

  const good = Buffer.from('57000001,Hi\n+26657000002,Hello\n57000001,"Two\nlines"\n');
  await checkFile(portal, good, 'The file has 3 rows, and none is bad.');
  for (const row of ['Local 2 2 0.10', 'International 1 1 0.25', 'Total 3 3 0.35']) {
    await expect(portal.page.getByRole('row', { name: row })).toBeVisible();
  }
  await expect(portal.row('looks_local')).toContainText('2');
  await expect(portal.row('An earlier row has the same number')).toContainText('3');

  const excel = Buffer.from('Number;Text\r\n57000001;caf\xe9\r\n', 'latin1');
  await checkFile(portal, excel, 'The file has 2 rows, and 2 are bad.');
  await expect(portal.main).toContainText('2: 57000001;café');
  await expect(portal.main).toContainText('probably Windows-1252');
  await expect(portal.heading('How to export a file')).toBeVisible();
  for (const width of [320, 1280]) {
    await portal.page.setViewportSize({ width, height: 640 });
    expect(await overflowing(portal.page), `elements that overflow at ${width}`).toEqual([]);
  }
  for (const colorScheme of scripts ? (['light', 'dark'] as const) : []) {
    await portal.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    expect(await axeFaults(portal.page), colorScheme).toEqual([]);
  }

  await portal.link('Numbers, one message for all').click();
  await portal.at(/file=numbers/);
  await portal.hydrated();
  await portal.page.getByLabel('Message to all of them').fill('Hello\nyou');
  const numbers = Buffer.from('57000001\n57000002\n');
  await checkFile(portal, numbers, 'The file has 2 rows, and none is bad.');
  await expect(portal.page.getByLabel('Message to all of them')).toHaveValue('Hello\nyou');

  expect(await balance()).toEqual(before);
  await portal.open(`/applications/${reference}/messages`);
  await expect(portal.main).toContainText('check the file');
});
