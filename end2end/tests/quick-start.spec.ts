import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '../support/test.js';

const run = promisify(execFile);

/** The languages, each with the file name of its program and the command that runs it. */
const languages: [string, string, string[]][] = [
  ['curl', 'send.sh', ['sh']],
  ['JavaScript', 'send.mjs', ['node']],
  ['Python', 'send.py', ['python3']],
  ['PHP', 'send.php', ['php']],
  ['Java', 'Send.java', ['java']],
];

for (const [language, file, [interpreter = '', ...options]] of languages) {
  test(`the quick start in ${language} sends with the test key as it stands`, async ({
    portal,
  }) => {
    const { reference, testKey } = await portal.customer();
    await portal.open(`/applications/${reference}/start`);
    const tab = portal.link(language);
    await tab.click();
    await expect(tab).toHaveAttribute('aria-current', 'page');
    if (language !== 'curl') await expect(portal.main.getByText(file).first()).toBeVisible();
    const program = await portal.main.locator('pre').nth(1).innerText();

    const folder = await mkdtemp(join(tmpdir(), 'quick-start-'));
    try {
      const path = join(folder, file);
      await writeFile(path, program);
      const env = { ...process.env, HELIOGRAPH_KEY: testKey };
      const { stdout } = await run(interpreter, [...options, path], { env });
      const transid = /m_[0-9a-z]{13}/.exec(stdout)?.[0];
      expect(transid, stdout).toBeDefined();
      await portal.settled(testKey, transid ?? '');
      const refused = await run(interpreter, [...options, path], {
        env: { ...env, HELIOGRAPH_KEY: testKey.replace(/.$/, '_') },
      });
      expect(refused.stdout + refused.stderr).toContain('api_invalid');
    } finally {
      await rm(folder, { recursive: true });
    }

    // The browser remembers the language.
    await portal.open(`/applications/${reference}/start`);
    await expect(portal.link(language)).toHaveAttribute('aria-current', 'page');
  });
}
