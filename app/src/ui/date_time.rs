//! Dates and times, shown the same everywhere.

use domain::{Timestamp, Zone};
use leptos::prelude::*;

use crate::time_zone::ShownZone;

/// A time, shown to the second in the zone of the page; its attribute has the milliseconds. Where
/// that isn't UTC, the zone's short name follows, and UTC is there for those who point at it
/// or have the page read out.
#[component]
pub fn DateTime(
    at: Timestamp,
    /// Whether UTC is named too: no heading above does that.
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

/// A heading over times, which ends with `(UTC)`; without that where the page shows them in
/// another zone, which each then names.
pub fn in_zone(heading: &'static str) -> &'static str {
    if ShownZone::read(Zone::is_utc) {
        heading
    } else {
        heading.trim_end_matches(" (UTC)")
    }
}
