import type { Locator } from '@playwright/test';
import type { Portal } from '../support/portal.js';
import { expect, test } from '../support/test.js';
import { ZONE, local } from '../support/times.js';

/** Returns the first element of the page that shows a time. */
function shown(portal: Portal, at: string): Locator {
  return portal.main.locator(`time[datetime="${at}"]`).first();
}

/** Checks that a time is shown in a zone other than UTC, with UTC next to it. */
async function isLocal(time: Locator, at: string, timeZone: string, name: string): Promise<void> {
  const utc = `${local(at, 'UTC')} UTC`;
  await expect(time).toHaveText(`${local(at, timeZone)} ${name}, ${utc}`);
  await expect(time).toHaveAttribute('title', utc);
}

/** Waits until the browser has the cookie with the name of its zone. */
async function zoneIsKept(portal: Portal, zone: string): Promise<void> {
  const kept = async () => {
    const cookies = await portal.page.context().cookies();
    return cookies.find(({ name }) => name === 'heliograph-time-zone')?.value;
  };
  await expect.poll(kept, 'the zone that the browser keeps').toBe(zone);
}

test("with scripts, times are in the browser's zone, with UTC next to them", async ({
  portal,
  server,
  scripts,
}) => {
  const { key } = await portal.customer();
  const sent = await server.send(key, '00000001', 'To be timed');
  const { created_at: at, transid } = await portal.settled(key, sent.body['transid']);
  if (scripts) await zoneIsKept(portal, ZONE);
  for (const path of ['/reports', `/reports/${transid}`]) {
    await portal.open(path);
    if (scripts) {
      await isLocal(shown(portal, at), at, ZONE, 'UTC-9:30');
    } else {
      await expect(shown(portal, at)).toHaveText(local(at, 'UTC'));
    }
  }
  await expect(portal.heading(/^Timeline/)).toHaveText(scripts ? 'Timeline' : 'Timeline (UTC)');
  const zone = scripts ? `Times are in the time zone ${ZONE}.` : 'Times are UTC.';
  await expect(portal.page.getByRole('contentinfo')).toContainText(zone);

  // A page that the browser renders shows the same.
  await portal.link('Reports').first().click();
  await portal.at('/reports');
  const heading = scripts ? 'Time' : 'Time (UTC)';
  await expect(portal.page.getByRole('columnheader', { name: heading, exact: true }))
    .toBeVisible();
  if (scripts) await isLocal(shown(portal, at), at, ZONE, 'UTC-9:30');
});

test('the page that first sends the zone still shows UTC', async ({ portal, scripts }) => {
  test.skip(!scripts, 'Without scripts, browsers send no zone.');
  await portal.open('/login');
  await zoneIsKept(portal, ZONE);
  const foot = portal.page.getByRole('contentinfo');
  await expect(foot).toContainText('Times are UTC.');
  await portal.reload();
  await expect(foot).toContainText(`Times are in the time zone ${ZONE}.`);
});

test('an account chooses its zone for all of its browsers', async ({
  portal,
  anotherBrowser,
  scripts,
}) => {
  const account = await portal.register();
  await portal.open('/account');
  const zone = portal.page.getByLabel('Time zone');
  await expect(zone.locator('option').first()).toHaveText("The browser's");
  await expect(zone).toHaveValue('');
  await zone.selectOption('Africa/Nairobi');
  await portal.button('Save time zone').click();
  await expect(portal.main.getByText('The time zone is saved.')).toBeVisible();
  await portal.hydrated();
  await expect(zone).toHaveValue('Africa/Nairobi');
  const other = await anotherBrowser({ timezoneId: 'America/Sao_Paulo' });
  await other.signIn(account);
  for (const browser of [portal, other]) {
    await browser.open('/devices');
    const time = browser.main.locator('time').first();
    const at = (await time.getAttribute('datetime'))!;
    await isLocal(time, at, 'Africa/Nairobi', 'EAT');
  }

  if (scripts) await zoneIsKept(other, 'America/Sao_Paulo');
  await other.open('/account');
  await other.page.getByLabel('Time zone').selectOption("The browser's");
  await other.button('Save time zone').click();
  await expect(other.main.getByText('The time zone is saved.')).toBeVisible();
  await other.open('/devices');
  const time = other.main.locator('time').first();
  const at = (await time.getAttribute('datetime'))!;
  if (scripts) {
    await isLocal(time, at, 'America/Sao_Paulo', 'UTC-3');
  } else {
    await expect(time).toHaveText(local(at, 'UTC'));
  }
});
