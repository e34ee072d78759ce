import { expect, test } from '../support/test.js';

test('an unknown address shows a page with a link', async ({ portal, watch }) => {
  watch.expects(/404/);
  const answer = await portal.page.goto('/no/such/page');
  expect(answer?.status()).toBe(404);
  await expect(portal.heading('Nothing here')).toBeVisible();
  await expect(portal.main.getByRole('link').first()).toBeVisible();
});

test('the front page has prices and links to registration and sign-in', async ({ portal }) => {
  await portal.open('/');
  await expect(portal.main).toContainText('0.05');
  await expect(portal.main).toContainText('0.25');
  // The first call can be copied without changes.
  await expect(portal.main.locator('pre').first()).toContainText(
    "--data number=58001234 \\\n  --data-urlencode 'message=",
  );
  await portal.link('Create account').first().click();
  await portal.at('/register');
  await portal.open('/');
  await portal.link('Sign in').first().click();
  await portal.at('/login');
});

test('headers forbid what pages do not need', async ({ portal }) => {
  const answer = await portal.page.goto('/login');
  const headers = answer!.headers();
  expect(headers['content-security-policy']).toMatch(/default-src 'self'|default-src 'none'/);
  expect(headers['content-security-policy']).not.toMatch(/'unsafe-inline'|'unsafe-eval'|\*/);
  expect(headers['x-content-type-options']).toBe('nosniff');
  expect(headers['referrer-policy']).toBe('same-origin');
});

test('browsers fetch scripts and styles compressed and never ask for them again', async ({ portal }) => {
  await portal.open('/');
  const links = portal.page.locator('link[rel=stylesheet], link[rel=modulepreload], link[rel=preload]');
  const addresses = await links.evaluateAll((found) => found.map((link) => (link as HTMLLinkElement).href));
  const kinds = new Set(addresses.map((address) => address.split('.').at(-1)));
  expect([...kinds].sort()).toEqual(['css', 'js', 'wasm']);
  expect(addresses.filter((address) => address.includes('/split_guests.'))).toHaveLength(1);
  for (const address of addresses) {
    const answer = await portal.page.request.get(address);
    expect(answer.status(), address).toBe(200);
    expect(answer.headers(), address).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-encoding': 'br',
    });
  }
});

test('cookies are kept from scripts and other sites', async ({
  portal,
  context,
  scripts,
}) => {
  await portal.register();
  const names = async () => (await context.cookies()).map(({ name }) => name).sort();
  const told = scripts ? ['heliograph-time-zone'] : [];
  await expect.poll(names).toEqual(['heliograph', 'heliograph-device', ...told]);
  for (const cookie of await context.cookies()) {
    expect(cookie).toMatchObject({ httpOnly: true, path: '/' });
    expect(['Lax', 'Strict']).toContain(cookie.sameSite);
  }
});

test('requests with 8 KB of cookies are answered, and longer ones are refused', async ({
  portal,
  context,
  server,
  watch,
  browserName,
}) => {
  watch.expects(/431/);
  // The answer isn't a page and may load nothing, but Firefox requests an icon.
  if (browserName === 'firefox') watch.expects(/favicon\.ico/);
  const bring = (from: number, to: number) => {
    const numbers = Array.from({ length: to - from }, (_, index) => from + index);
    const value = 'x'.repeat(4000);
    const cookie = (number: number) => ({ name: `other-${number}`, value, url: server.url });
    return context.addCookies(numbers.map(cookie));
  };
  await bring(0, 3);
  await portal.register();
  await portal.open('/applications/new');
  await portal.fillApplication('My Shop', 'SMS');
  await portal.button('Create application').click();
  await expect(portal.alert('A sender name has 1 to 11')).toBeVisible();
  await expect(portal.page.getByLabel('Sender name')).toHaveValue('My Shop');
  await bring(3, 20);
  const answer = await portal.page.goto('/applications');
  expect(answer?.status()).toBe(431);
  await expect(portal.page.locator('body')).toContainText('head is larger than 64 KiB');
});

test('a form of another site changes nothing', async ({ portal, server, context }) => {
  await portal.register();
  const { reference } = await portal.createApplication();
  const answer = await context.request.post(`${server.url}/fn/request-activation`, {
    form: { reference },
    headers: { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' },
    maxRedirects: 0,
  });
  expect(answer.status()).toBe(403);
  expect((await server.staff('application', 'show', reference)).activation_requested_at).toBeNull();
});

test('with scripts, forms and links do not reload the page', async ({ portal, scripts }) => {
  await portal.register();
  await portal.open('/applications');
  let loads = 0;
  portal.page.on('load', () => (loads += 1));
  await portal.link('New application').click();
  await portal.at('/applications/new');
  await portal.fillApplication('', 'SMS');
  await portal.button('Create application').click();
  await portal.readKeys();
  if (scripts) expect(loads).toBe(0);
  else expect(loads).toBeGreaterThan(0);
});

test('a page whose code cannot be loaded is opened without scripts', async ({
  portal,
  scripts,
  watch,
  browserName,
}) => {
  await portal.register();
  // The browser reports the missing file, and that nothing used what it had loaded meanwhile.
  watch.expects(/split_account|HTTP status|was preloaded using link preload but not used/);
  // Firefox doesn't say what the error is.
  if (browserName === 'firefox') watch.expects(/console: Error /);
  const code = '**/pkg/split_account.*';
  const live = portal.page.locator('html[data-live]');
  await portal.page.addInitScript(() => {
    const { fetch } = window;
    window.fetch = async (...request) => {
      const answer = await fetch(...request);
      if (answer.status === 404) document.documentElement.dataset.missed = '';
      return answer;
    };
  });
  const staysAsItIs = async (name: RegExp) => {
    await expect(live).not.toBeAttached();
    // The program of this document has started and missed its part.
    if (scripts) await expect(portal.page.locator('html[data-missed]')).toBeAttached();
    await expect(portal.heading(name)).toBeVisible();
    await expect(live).not.toBeAttached();
  };
  const lose = () => portal.page.route(code, (route) => route.fulfill({ status: 404 }));
  await lose();
  await portal.open('/applications');
  await portal.link('Reports').click();
  await portal.at('/reports');
  await staysAsItIs(/^Reports$/);
  await portal.page.unroute(code);
  await portal.link('Security').click();
  await portal.at('/devices');
  await portal.hydrated();
  await portal.link('My Applications').click();
  await portal.at('/applications');
  await lose();
  await portal.reload();
  await portal.page.goBack();
  await portal.at('/devices');
  await staysAsItIs(/^Security$/);
});

test('code whose request fails is requested again', async ({ portal, scripts, watch }) => {
  test.skip(!scripts);
  watch.expects(/Failed to load resource: net::ERR_FAILED .*split_account/);
  await portal.register();
  await portal.open('/applications');
  let requests = 0;
  let loads = 0;
  portal.page.on('load', () => (loads += 1));
  await portal.page.route('**/pkg/split_account.*', (route) => {
    requests += 1;
    return requests === 1 ? route.abort() : route.continue();
  });
  await portal.link('Reports').click();
  await expect(portal.heading(/^Reports$/)).toBeVisible();
  expect({ requests, loads }).toEqual({ requests: 2, loads: 0 });
});

test('a page can be left while code is loading', async ({ portal, scripts }) => {
  test.skip(!scripts);
  await portal.register();
  await portal.open('/applications');
  const requested = portal.page.waitForRequest('**/pkg/split_account.*');
  await portal.page.route('**/pkg/split_account.*', () => {});
  await portal.link('Reports').click();
  await requested;
  await portal.open('/docs');
  await expect(portal.heading('API reference')).toBeVisible();
  await portal.at('/docs');
});
