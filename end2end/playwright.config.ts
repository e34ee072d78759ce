import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { defineConfig } from '@playwright/test';
import { ZONE } from './support/times.js';

/** The machine's own browser: `CHROMIUM`, or the first of its usual names on the PATH. */
function chromium(): string {
  const named = process.env['CHROMIUM'];
  const names = named ? [named] : ['chromium', 'chromium-browser', 'google-chrome'];
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
  throw new Error('No Chromium on the PATH: install it, or name it in CHROMIUM.');
}

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  fullyParallel: true,
  forbidOnly: true,
  // A test that fails once and then passes has found a fault.
  retries: 0,
  workers: 2,
  // Time is bounded, not measured: a busy machine needs several times what an idle one does.
  timeout: 60_000,
  globalTimeout: 900_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    headless: true,
    launchOptions: {
      executablePath: chromium(),
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
    { name: 'with-javascript', use: { javaScriptEnabled: true } },
    { name: 'without-javascript', use: { javaScriptEnabled: false } },
  ],
});
