import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';

/** What axe finds wrong with the open page, by all of its rules or by those that are named. */
export async function axeFaults(page: Page, ...rules: string[]): Promise<string[]> {
  // With `preload` axe would fetch the style sheets again, which a page must not do. The legacy
  // mode opens no page beside this one: the portal has no frames.
  const axe = new AxeBuilder({ page }).options({ preload: false }).setLegacyMode(true);
  if (rules.length > 0) axe.withRules(rules);
  const { violations } = await axe.analyze();
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`),
  );
}

/** Elements whose content is wider than they are: the page itself, or a text. */
export async function overflowing(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('html, h1, h2, p, dt, dd, li, label, button, a.button')]
      .filter((element) => getComputedStyle(element).display !== 'inline')
      .filter((element) => element.scrollWidth > element.clientWidth + 1)
      .map((element) => `${element.localName}: ${element.textContent?.slice(0, 80)}`),
  );
}

/**
 * What can't be told apart where the system chooses the colours: controls without a line around
 * them, invalid fields that look like others, and links to the page that is shown that look like
 * others.
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
