import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type PlaywrightTestConfig, defineConfig } from '@playwright/test';
import { ZONE } from './support/times.js';

/** A browser of this machine: the one that a variable names, or the first usual one on the PATH. */
function browser(variable: string, usual: string[]): string {
  const named = process.env[variable];
  const names = named ? [named] : usual;
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const candidates = names.flatMap((name) => [
    ...(name.includes('/') ? [name] : []),
    ...folders.map((folder) => join(folder, name)),
  ]);
  for (const candidate of candidates) {
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // There is no such program: the next candidate is tried.
    }
  }
  throw new Error(`There is no ${names.join(' or ')}: install it, or name it in ${variable}.`);
}

/** The tests that Firefox runs too: all of them, or the longest journeys through the portal. */
const inFirefox =
  process.env['FIREFOX_TESTS'] === 'all'
    ? '*.spec.ts'
    : ['two-factor.spec.ts', 'whole-way.spec.ts'];

/** What has no form to send, so that it is enough to run it with scripts. */
const withoutForms = ['interactions', 'quick-start', 'retries', 'tour'].map(
  (name) => `${name}.spec.ts`,
);

const chromium: PlaywrightTestConfig['use'] = {
  browserName: 'chromium',
  launchOptions: {
    executablePath: browser('CHROMIUM', ['chromium', 'chromium-browser', 'google-chrome']),
    args: [
      // Chromium's sandbox doesn't run as root.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      // The browser sends no requests of its own, and can reach this machine alone.
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-default-apps',
      '--disable-domain-reliability',
      '--disable-sync',
      '--no-first-run',
      '--no-pings',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  },
};

/** Firefox as it is distributed, by WebDriver BiDi. */
const firefox: PlaywrightTestConfig['use'] = {
  browserName: 'firefox',
  channel: 'moz-firefox',
  launchOptions: { executablePath: browser('FIREFOX', ['firefox-esr', 'firefox']) },
};

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  fullyParallel: true,
  forbidOnly: true,
  // A test that fails once and then passes has found a fault.
  retries: 0,
  // Some tests wait for the sandbox or for the next code, so there are more workers than cores.
  workers: 3,
  // Time is bounded, not measured: a busy machine needs several times what an idle one does.
  timeout: 60_000,
  // All tests in three projects take a quarter of an hour on two idle cores.
  globalTimeout: 1_800_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: {
    headless: true,
    // Unlike the server's: a text that depends on the place shows as a difference at hydration.
    locale: 'fr-FR',
    timezoneId: ZONE,
    actionTimeout: 10_000,
    navigationTimeout: 15_000,
    screenshot: 'only-on-failure',
    // A trace of every test would take a third of the time: `npx playwright test --trace on` for
    // one.
    trace: 'off',
  },
  projects: [
    { name: 'with-javascript', use: { ...chromium, javaScriptEnabled: true } },
    {
      name: 'without-javascript',
      testIgnore: withoutForms,
      use: { ...chromium, javaScriptEnabled: false },
    },
    // By this protocol scripts can't be turned off.
    { name: 'firefox', testMatch: inFirefox, use: { ...firefox, javaScriptEnabled: true } },
  ],
});
