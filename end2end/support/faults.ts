import { AxeBuilder } from '@axe-core/playwright';
import type { Locator, Page } from '@playwright/test';

/** Returns the faults that axe finds on the open page, by all rules or only by `rules`. */
export async function axeFaults(page: Page, ...rules: string[]): Promise<string[]> {
  // With `preload`, axe would load the style sheets again, which a page must not do. The legacy
  // mode opens no second page. It doesn't check frames, but the portal has none.
  const axe = new AxeBuilder({ page }).options({ preload: false }).setLegacyMode(true);
  if (rules.length > 0) axe.withRules(rules);
  const { violations } = await axe.analyze();
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`),
  );
}

const CONTROL =
  /^\s*- (button|textbox|searchbox|combobox|checkbox|radio|spinbutton|link)\b(?: "(.*?)")?/;

/**
 * Returns the IDs that several elements have, the controls without a name, and the names that
 * several controls in tables share. A screen reader tells rows apart only by these names.
 */
export async function misnamed(page: Page): Promise<string[]> {
  const ids = await page.evaluate(() => {
    const all = [...document.querySelectorAll('[id]')].map((element) => element.id);
    return [...new Set(all.filter((id, place) => all.indexOf(id) < place))];
  });
  const read = async (locator: Locator) =>
    (await locator.ariaSnapshot())
      .split('\n')
      .map((line) => CONTROL.exec(line))
      .filter((found) => found !== null);
  const nameless = (await read(page.locator('body'))).filter((found) => !found[2]);
  const inTables: string[] = [];
  for (const table of await page.getByRole('table').all()) {
    const found = (await read(table)).filter(([, role]) => role !== 'link');
    inTables.push(...found.map(([, role, name]) => `${role} "${name}"`));
  }
  return [
    ...ids.map((id) => `several elements have the id ${id}`),
    ...nameless.map(([line]) => `no name: ${line.trim()}`),
    ...inTables
      .filter((name, place) => inTables.indexOf(name) < place)
      .map((name) => `several controls in tables: ${name}`),
  ];
}

/** Returns the elements that are narrower than their content: the page itself, or texts. */
export async function overflowing(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('html, h1, h2, p, dt, dd, li, label, button, a.button')]
      .filter((element) => getComputedStyle(element).display !== 'inline')
      .filter((element) => element.scrollWidth > element.clientWidth + 1)
      .map((element) => `${element.localName}: ${element.textContent?.slice(0, 80)}`),
  );
}

/**
 * Returns the elements that can't be told apart when the system chooses the colours: controls
 * without a border, invalid fields that look like valid ones, and links to the current page that
 * look like other links.
 */
export async function indistinct(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const border = (element: Element) => {
      const { borderBottomStyle, borderBottomWidth, borderBottomColor } = getComputedStyle(element);
      return `${borderBottomStyle} ${borderBottomWidth} ${borderBottomColor}`;
    };
    const shown = (selector: string) =>
      [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    const named = (what: string) => (element: Element) => `${what}: ${element.outerHTML}`;
    const controls = 'button, .button, .field input, .field select, .field textarea';
    const bare = shown(controls).filter((element) => /^none|^\S+ 0px/.test(border(element)));
    const invalid = shown('[aria-invalid="true"]').filter((element) =>
      shown('.field input:not([aria-invalid]), .field select:not([aria-invalid])').some(
        (other) => border(other) === border(element),
      ),
    );
    const looks = (element: Element) =>
      `${border(element)} ${getComputedStyle(element).textDecorationLine}`;
    const current = shown('nav [aria-current]').filter((element) =>
      [...(element.closest('nav')?.querySelectorAll('a:not([aria-current])') ?? [])].some(
        (other) => looks(other) === looks(element),
      ),
    );
    return [
      ...bare.map(named('no border')),
      ...invalid.map(named('looks valid')),
      ...current.map(named('looks like other links')),
    ];
  });
}
