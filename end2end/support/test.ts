import {
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  test as base,
  expect,
} from '@playwright/test';
import { Portal } from './portal.js';
import { Server } from './server.js';

/**
 * Playwright adds an inline style when it takes a screenshot. Firefox complains as if the style
 * were the page's own. The hash belongs to this version of Playwright.
 */
const STYLE_OF_PLAYWRIGHT =
  /blocked an inline style .*'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT\+SmwNZWA='/;

/**
 * Firefox reports a request that was still loading when the page was left. It reports a failed
 * request of the current page in the same way, so only Chromium finds those.
 */
const LEFT_IN_FIREFOX = new RegExp(
  '^error: (NetworkError when|The operation was aborted|Firefox can’t establish)',
);

/** Collects complaints: errors on the console, exceptions, and requests to other sites. */
class Watch {
  readonly complaints: string[] = [];
  private readonly expected: RegExp[] = [];

  constructor(
    private readonly origin: string,
    scripts: boolean,
    private readonly firefox: boolean,
  ) {
    // Without scripts, the browser preloads the WebAssembly but never runs it.
    if (!scripts) this.expects(/was preloaded using link preload but not used/);
    if (firefox) {
      this.expects(STYLE_OF_PLAYWRIGHT);
      this.expects(LEFT_IN_FIREFOX);
    }
  }

  follow(context: BrowserContext): void {
    context.on('console', (message) => {
      const place = message.location().url;
      const text = `${message.type()} on the console: ${message.text()} (${place})`;
      const complains = ['error', 'warning', 'assert'].includes(message.type());
      if (complains && !this.isExpected(text)) this.complaints.push(text);
    });
    context.on('weberror', (error) => {
      const text = `error: ${error.error().message}`;
      // Firefox reports some complaints as errors that Chromium writes to the console.
      if (!this.firefox || !this.isExpected(text)) this.complaints.push(text);
    });
    context.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (!['data:', 'blob:'].includes(protocol) && origin !== this.origin) {
        this.complaints.push(`called another site: ${request.url()}`);
      }
    });
  }

  private isExpected(text: string): boolean {
    return this.expected.some((pattern) => pattern.test(text));
  }

  /** Fails with all complaints. */
  judge(): void {
    if (this.complaints.length === 0) return;
    const error = new Error(`The pages complained:\n${this.complaints.join('\n')}`);
    // With a stack, Playwright also prints this code, and the complaints are far from the log's end.
    error.stack = error.message;
    throw error;
  }

  /**
   * Allows a page whose session was ended elsewhere to ask again for its events, which it does after
   * some seconds.
   */
  expectsEndedSessions(): void {
    this.expects(/with a status of 401 .*\/events[)?]/);
  }

  /** Allows a complaint. For example, browsers report a page with status 404. */
  expects(pattern: RegExp): void {
    this.expected.push(pattern);
  }
}

interface Tools {
  watch: Watch;
  portal: Portal;
  /** Opens another browser with its own profile. */
  anotherBrowser: (options?: BrowserContextOptions) => Promise<Portal>;
  scripts: boolean;
}

export const test = base.extend<Tools, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = await Server.start();
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],

  baseURL: async ({ server }, use) => use(server.url),

  scripts: async ({ javaScriptEnabled }, use) => use(javaScriptEnabled !== false),

  watch: [
    async ({ context, server, scripts, browserName }, use) => {
      const watch = new Watch(server.url, scripts, browserName === 'firefox');
      watch.follow(context);
      await use(watch);
      watch.judge();
    },
    { auto: true },
  ],

  portal: async ({ page, server, scripts }, use) => use(new Portal(page, server, scripts)),

  anotherBrowser: async ({ browser, server, scripts, watch }, use) => {
    const contexts: BrowserContext[] = [];
    await use(async (options = {}) => {
      const context = await browser.newContext({
        ...options,
        baseURL: server.url,
        javaScriptEnabled: scripts,
      });
      contexts.push(context);
      watch.follow(context);
      return new Portal(await context.newPage(), server, scripts);
    });
    await Promise.all(contexts.map((context) => context.close()));
  },
});

export { expect, type Page };
