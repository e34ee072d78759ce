/**
 * The time zone of the test browsers. Its offset isn't a whole number of hours, it has no summer
 * time, and browsers know only one name for it.
 */
export const ZONE = 'Pacific/Marquesas';

/** Formats a time in a time zone, for example `2026-11-23 14:05:10`. */
export function local(at: string, timeZone: string): string {
  const format = { timeZone, dateStyle: 'short', timeStyle: 'medium' } as const;
  return new Intl.DateTimeFormat('sv-SE', format).format(new Date(at));
}
