import { randomBytes } from 'node:crypto';
import { type Locator, type Page, expect } from '@playwright/test';
import { Authenticator } from './authenticator.js';
import type { Server } from './server.js';

const KEY = /[0-9]{6}h[kt]_[0-9A-Za-z]{36}/g;

export interface Account {
  email: string;
  password: string;
}

export interface Application {
  reference: string;
  /** The live key. */
  key: string;
  testKey: string;
}

/** Returns a text that no other test uses. */
export function unique(prefix: string): string {
  return `${prefix}${randomBytes(4).toString('hex')}`;
}

export function newAccount(): Account {
  return { email: `${unique('customer-')}@example.org`, password: unique('correct horse ') };
}

/** The actions of a person in the portal. Controls are found by their labels. */
export class Portal {
  constructor(
    readonly page: Page,
    readonly server: Server,
    private readonly scripts: boolean,
  ) {}

  /** Opens a page. With scripts, waits until the page is hydrated. */
  async open(path: string): Promise<void> {
    await this.page.goto(path);
    await this.hydrated();
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.hydrated();
  }

  async hydrated(): Promise<void> {
    if (this.scripts) await expect(this.page.locator('html[data-live]')).toBeAttached();
  }

  get main(): Locator {
    return this.page.getByRole('main');
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name, exact: true });
  }

  link(name: string): Locator {
    return this.page.getByRole('link', { name, exact: true });
  }

  heading(name: string | RegExp): Locator {
    return this.page.getByRole('heading', { name });
  }

  /** The form that a button submits. */
  form(button: string): Locator {
    return this.page
      .locator('form')
      .filter({ has: this.page.getByRole('button', { name: button, exact: true }) });
  }

  /** The problem that a form shows. */
  alert(text: string | RegExp): Locator {
    return this.page.getByRole('alert').filter({ hasText: text });
  }

  /** The value of a term in the page's list of facts. */
  fact(term: string): Locator {
    const name = this.page.locator('dt', { hasText: new RegExp(`^${escape(term)}$`) });
    return this.page.locator('dl > div').filter({ has: name }).locator('dd');
  }

  /** The table rows that show a text, without heading rows. */
  row(text: string): Locator {
    const rows = this.main.getByRole('row').filter({ has: this.page.locator('td') });
    return rows.filter({ hasText: text });
  }

  /** Presses Tab until the target has the focus, and checks that the focus is visible. */
  async tabTo(target: Locator): Promise<void> {
    for (let presses = 0; presses < 40; presses += 1) {
      await this.page.keyboard.press('Tab');
      if (await target.evaluate((element) => element === document.activeElement)) {
        const outline = await target.evaluate((element) => getComputedStyle(element).outlineStyle);
        expect(outline, 'the outline of the focused element').not.toBe('none');
        return;
      }
    }
    throw new Error(`Tab never reached ${target}.`);
  }

  async at(path: string | RegExp): Promise<void> {
    const pattern = typeof path === 'string' ? new RegExp(`^${escape(path)}$`) : path;
    await expect(this.page).toHaveURL((url) => pattern.test(url.pathname + url.search));
  }

  /** Waits for a page, whatever its parameters. Those of a notice go soon after it is shown. */
  async on(path: string): Promise<void> {
    await expect(this.page).toHaveURL((url) => url.pathname === path);
  }

  /** Opens the filters of the reports page that are hidden at first. */
  async openFilters(): Promise<void> {
    const closed = this.form('Apply filters').locator('details:not([open]) > summary');
    if (await closed.count()) await closed.click();
  }

  /** Confirms an action of staff. Its button has opened the confirmation. */
  async confirms(label: string, reason?: string): Promise<void> {
    await this.at(/^\/support\/confirm\?/);
    await this.hydrated();
    if (reason !== undefined) {
      await this.page.getByLabel('Reason', { exact: true }).fill(reason);
    }
    await this.button(label).click();
  }

  async register(account: Account = newAccount()): Promise<Account> {
    this.server.keepsSecret(account.password);
    await this.open('/register');
    const form = this.form('Create account');
    await form.getByLabel('Email').fill(account.email);
    await form.getByLabel('Password').fill(account.password);
    await this.button('Create account').click();
    await this.at('/applications');
    return account;
  }

  async signIn(account: Account): Promise<void> {
    await this.open('/login');
    await this.fillSignIn(account);
    await this.at('/applications');
  }

  /** Adds a new member of staff, who signs in and sets up a second factor. */
  async staff(account: Account = newAccount()): Promise<Account & { app: Authenticator }> {
    await this.server.addStaff(account.email, account.password);
    await this.open('/login');
    await this.fillSignIn(account);
    await this.at('/account/two-factor');
    const { app } = await this.setUpTwoFactor();
    await this.open('/applications');
    return { ...account, app };
  }

  /** Sets up a second factor on the open page. Returns the app and the recovery codes. */
  async setUpTwoFactor(): Promise<{ app: Authenticator; codes: string[] }> {
    await this.hydrated();
    const secret = await this.main.locator('p > code.key').innerText();
    const app = new Authenticator(secret);
    this.server.keepsSecret(app.secret);
    await this.page.getByLabel('Code', { exact: true }).fill(await app.code());
    await this.button('Confirm').click();
    await expect(this.heading('Your recovery codes')).toBeVisible();
    await expect(this.main.locator('.once code')).toHaveCount(10);
    const codes = await this.main.locator('.once code').allInnerTexts();
    this.server.keepsSecret(...codes);
    return { app, codes };
  }

  /** Signs in with the password and then a code of the app. */
  async signInByCode(account: Account, app: Authenticator): Promise<void> {
    await this.open('/login');
    await this.fillSignIn(account);
    await this.at(/^\/login\/code/);
    await this.hydrated();
    await this.page.getByLabel('Code', { exact: true }).fill(await app.code());
    await this.button('Confirm').click();
    await this.at(/^\/(applications|support)$/);
  }

  /** Fills in and submits the sign-in form. Doesn't check the next page. */
  async fillSignIn(account: Account): Promise<void> {
    const form = this.form('Sign in');
    // In Firefox, `fill` appends to the text of an email field.
    await form.getByLabel('Email').clear();
    await form.getByLabel('Email').fill(account.email);
    await form.getByLabel('Password').fill(account.password);
    await this.button('Sign in').click();
  }

  async createApplication(sender = '', category = 'SMS'): Promise<Application> {
    await this.open('/applications/new');
    await this.fillApplication(sender, category);
    await this.button('Create application').click();
    return this.readKeys();
  }

  async fillApplication(sender: string, category: string): Promise<void> {
    await this.page.getByLabel('Category').selectOption(category);
    await this.page.getByLabel('Sender name').fill(sender);
  }

  /** Replaces a key on the page of the keys and confirms that. Returns the new key. */
  async replaceKey(reference: string, kind: 'live' | 'test', password: string): Promise<string> {
    await this.confirmReplacement(reference, kind, password);
    const [key] = (await this.newKeys(1)) as [string];
    return key;
  }

  /** Requests a new key and confirms that with a password. Doesn't check the next page. */
  async confirmReplacement(
    reference: string,
    kind: 'live' | 'test',
    password: string,
  ): Promise<void> {
    const [open, confirm] =
      kind === 'live'
        ? ['Replace the API key', 'Replace key']
        : ['Replace the test key', 'Replace test key'];
    await this.open(`/applications/${reference}/keys`);
    await this.link(open).click();
    await this.form(confirm).getByLabel('Password').fill(password);
    await this.button(confirm).click();
  }

  /** Reads both keys of a new application from the page that shows them once. */
  async readKeys(): Promise<Application> {
    const keys = await this.newKeys(2);
    const key = keys.find((text) => text.includes('hk_'))!;
    const testKey = keys.find((text) => text.includes('ht_'))!;
    expect(testKey.slice(0, 6)).toBe(key.slice(0, 6));
    return { reference: key.slice(0, 6), key, testKey };
  }

  /** Waits for the fields of new keys, and returns the keys. */
  async newKeys(count: number): Promise<string[]> {
    await expect(this.main.locator('input[readonly]'), 'fields with keys').toHaveCount(count);
    return this.shownKeys();
  }

  /** Returns all keys on the page, in fields and in texts. */
  async shownKeys(): Promise<string[]> {
    const texts = await this.page.locator('input, textarea, main').evaluateAll((elements) =>
      elements.map((element) =>
        element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement
          ? element.value
          : (element.textContent ?? ''),
      ),
    );
    const keys = new Set(texts.flatMap((text) => text.match(KEY) ?? []));
    this.server.keepsSecret(...keys);
    return [...keys];
  }

  /** Registers an account with an Active application that has a balance. */
  async customer(sender = ''): Promise<Account & Application> {
    const account = await this.register();
    const application = await this.createApplication(sender);
    await this.server.staff('application', 'approve', application.reference);
    await this.deposit(application, '10');
    return { ...account, ...application };
  }

  async deposit(application: Application, amount: string): Promise<void> {
    await this.server.staff(
      'deposit', 'add', application.reference, amount, '--bank-id', unique('bank-'),
    );
  }

  /**
   * Imports a bank statement. `lines` have the columns "id", "reference" and "amount". Before the
   * import, checks that the page marks the line with the ID `credited` as credited.
   */
  async importStatement(lines: string[], credited: string): Promise<void> {
    await this.open('/support/import');
    await this.page.getByLabel('CSV file').setInputFiles({
      name: 'bank.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(['id;reference;amount', ...lines, ''].join('\n')),
    });
    await this.button('Check the file').click();
    await this.at(/^\/support\/import\?statement=/);
    await this.hydrated();
    await expect(this.row(credited)).toContainText('Will be credited');
    await this.button('Import').click();
    await expect(async () => {
      await this.page.reload();
      await expect(this.main.getByText('All lines are done.')).toBeVisible({ timeout: 1000 });
    }).toPass();
  }

  /** Returns the ID of the pending request for a sender name. */
  async senderRequest(name: string): Promise<string> {
    const requests: { id: number; name: string }[] = await this.server.staff('sender', 'list');
    const request = requests.find((waiting) => waiting.name === name);
    if (!request) throw new Error(`There is no pending request for ${name}.`);
    return String(request.id);
  }

  /** Uploads rows, waits until the batch is done, and returns its ID. */
  async uploaded(
    key: string,
    rows: [string, string][],
    more: Record<string, string> = {},
  ): Promise<string> {
    const sent = await this.server.upload(key, rows, more);
    const accepted = { status: 200, body: { rows: rows.length } };
    expect(sent, 'the answer to an upload').toMatchObject(accepted);
    const batchid: string = sent.body['batchid'];
    await this.batchDone(key, batchid);
    return batchid;
  }

  /** Waits until every message of a batch is final. */
  async batchDone(key: string, batchid: string, timeout = 20_000): Promise<void> {
    const status = async () =>
      (await this.server.api(`batches/${key}/${batchid}`)).body['batch'].status;
    await expect.poll(status, { message: 'the status of the batch', timeout }).toBe('done');
  }

  /** Waits until a message is final, and returns its report. */
  async settled(key: string, transid: string): Promise<Record<string, any>> {
    const report = async () => (await this.server.api(`reports/${key}/${transid}`)).body['report'];
    await expect
      .poll(async () => (await report()).final_at, 'when the message became final')
      .not.toBeNull();
    return report();
  }
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
