import { expect, test } from '../support/test.js';

/** Whether to measure: `MEASURE_INTERACTIONS=1 npx playwright test interactions`. */
const measures = process.env['MEASURE_INTERACTIONS'] === '1';
const COLUMNS = 'time.number.message.status.sender.completed.pages.segments.cost.request.batch';

// Measures how long the largest reports page takes from an interaction to the next paint. The page
// has fifty messages, all columns, batches and the chart. The processor is as slow as a phone's.
// The figures depend on the machine, so they are printed and never checked.
test('the time from an interaction to the next paint is measured', async ({
  portal,
  context,
}) => {
  test.skip(!measures, 'only measured on demand');
  test.setTimeout(120_000);
  const { key } = await portal.customer();
  const row = (i: number): [string, string] => [
    `0000000${1 + (i % 4)}`,
    `Message ${i} `.repeat(20).slice(0, 150),
  ];
  for (let batch = 0; batch < 6; batch += 1) {
    await portal.uploaded(key, Array.from({ length: 20 }, (_, i) => row(i)));
  }
  const devtools = await context.newCDPSession(portal.page);
  for (const slower of [1, 4]) {
    await portal.open(`/reports?columns=${COLUMNS}`);
    await expect(portal.page.getByRole('region', { name: 'Sent messages' }).locator('tbody tr'))
      .toHaveCount(50);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: slower });
    await portal.page.evaluate(() => {
      const kept: [string, number][] = [];
      Object.assign(window, { kept });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { interactionId: number })[]) {
          if (entry.interactionId > 0) kept.push([entry.name, entry.duration]);
        }
      }).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit);
    });
    for (const chart of [
      'Messages by application',
      'Cost by application',
      'Delivery times',
      'Messages by status',
    ]) {
      const link = portal.page.getByRole('link', { name: chart, exact: true });
      await link.click();
      await expect(link).toHaveAttribute('aria-current', /./);
    }
    await portal.page.getByText('The chart as a table').click();
    await portal.page.getByText('Choose columns').click();
    const filters = portal.form('Apply filters');
    await filters.getByLabel('Number').pressSequentially('0000000');
    await portal.openFilters();
    await filters.getByLabel('Status').selectOption('failed');
    await portal.link('Older messages').click();
    await expect(portal.link('Newer messages')).toBeVisible();
    await portal.page.evaluate(() => new Promise((painted) => setTimeout(painted, 300)));
    const found = await portal.page.evaluate(
      () => (window as unknown as { kept: [string, number][] }).kept,
    );
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 });
    const elements = await portal.page.evaluate(() => document.querySelectorAll('*').length);
    const worst = found.toSorted(([, a], [, b]) => b - a).slice(0, 5);
    console.log(`processor ${slower}x slower, ${elements} elements; the longest:`, worst);
  }
});
