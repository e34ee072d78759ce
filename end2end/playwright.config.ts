import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type PlaywrightTestConfig, defineConfig } from '@playwright/test';
import { ZONE } from './support/times.js';

/** Finds a browser: the one that an environment variable names, or the first one on the PATH. */
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
      // There is no such program. Try the next candidate.
    }
  }
  throw new Error(`There is no ${names.join(' or ')}. Install it, or set ${variable} to its path.`);
}

/** The tests that also run in Firefox: all of them, or the longest journeys through the portal. */
const inFirefox =
  process.env['FIREFOX_TESTS'] === 'all'
    ? '*.spec.ts'
    : ['two-factor.spec.ts', 'whole-way.spec.ts'];

/** Tests that submit no forms. They run only with JavaScript. */
const withoutForms = ['interactions', 'quick-start', 'receivers', 'retries', 'tour'].map(
  (name) => `${name}.spec.ts`,
);

const chromium: PlaywrightTestConfig['use'] = {
  browserName: 'chromium',
  launchOptions: {
    executablePath: browser('CHROMIUM', ['chromium-headless-shell', 'chromium', 'google-chrome']),
    args: [
      // Chromium's sandbox doesn't run as root.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      // The browser sends no requests of its own, and reaches only this machine.
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

/** An unmodified Firefox, controlled by WebDriver BiDi. */
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
  // A test that fails and then passes has found a fault, so it isn't retried.
  retries: 0,
  // Some tests wait for the sandbox or for the next code, so there are more workers than cores.
  workers: 3,
  // Only stops tests that hang: a busy machine is several times slower than an idle one.
  timeout: 60_000,
  // All tests in three projects take a quarter of an hour on two idle cores.
  globalTimeout: 1_800_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: {
    headless: true,
    // The server has another locale, so text that depends on the locale fails at hydration.
    locale: 'fr-FR',
    timezoneId: ZONE,
    actionTimeout: 10_000,
    navigationTimeout: 15_000,
    screenshot: 'only-on-failure',
    // Traces of all tests would take a third of the time. For one test, use
    // `npx playwright test --trace on`.
    trace: 'off',
  },
  projects: [
    { name: 'with-javascript', use: { ...chromium, javaScriptEnabled: true } },
    {
      name: 'without-javascript',
      testIgnore: withoutForms,
      use: { ...chromium, javaScriptEnabled: false },
    },
    // WebDriver BiDi can't turn scripts off.
    { name: 'firefox', testMatch: inFirefox, use: { ...firefox, javaScriptEnabled: true } },
  ],
});
