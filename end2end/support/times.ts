/**
 * The time zone of the tests' browsers: it has minutes and no summer time, and browsers have one
 * name for it alone.
 */
export const ZONE = 'Pacific/Marquesas';

/** What clocks of a zone show at a time, like `2026-11-23 14:05:10`. */
export function local(at: string, timeZone: string): string {
  const format = { timeZone, dateStyle: 'short', timeStyle: 'medium' } as const;
  return new Intl.DateTimeFormat('sv-SE', format).format(new Date(at));
}
