//! Dates and times in one format for all pages.

use domain::{Timestamp, Zone};
use leptos::prelude::*;

use crate::time_zone::ShownZone;

/// A time in the page's zone, to the second. The `datetime` attribute has the milliseconds. In a
/// zone other than UTC, the zone's short name follows, and the UTC time is in the tooltip and in
/// the text for screen readers.
#[component]
pub fn DateTime(
    at: Timestamp,
    /// Whether to add "UTC" to a UTC time, because no heading names the zone.
    #[prop(optional)]
    with_zone: bool,
) -> impl IntoView {
    let (text, utc) = ShownZone::read(|zone| {
        let text = zone.to_table(at);
        if !zone.is_utc() {
            let text = format!("{text} {}", zone.short_name(at));
            (text, Some(format!("{} UTC", at.to_table())))
        } else if with_zone {
            (format!("{text} UTC"), None)
        } else {
            (text, None)
        }
    });
    let read_out = utc.clone().map(|utc| {
        view! { <span class="visually-hidden">{format!(", {utc}")}</span> }
    });
    view! {
        <time datetime=at.to_string() title=utc>
            {text}
            {read_out}
        </time>
    }
}

/// Removes the `(UTC)` at the end of a heading over times if the page shows times in another zone.
/// Then each time names its zone.
pub fn in_zone(heading: &'static str) -> &'static str {
    if ShownZone::read(Zone::is_utc) { heading } else { heading.trim_end_matches(" (UTC)") }
}
