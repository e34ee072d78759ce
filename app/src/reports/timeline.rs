//! The timeline of a message, in sentences.

use domain::records::TimelineEntry;
use domain::{MessageStatus, Timestamp};
use leptos::prelude::*;

use super::explained::meaning;
use super::grouped;
use crate::ui::{DateTime, StateMark};

/// The prefix of a detail that names the carrier that accepted the message.
const TAKEN_BY: &str = "taken by ";
/// The prefix of a detail with the time that a message waits for.
const SCHEDULED_FOR: &str = "scheduled for ";

#[component]
pub fn Timeline(timeline: Vec<TimelineEntry>) -> impl IntoView {
    let begin = timeline.first().map(|entry| entry.at);
    let entries = timeline.into_iter().enumerate().map(|(place, entry)| {
        let words = told(&entry, place == 0);
        let later = begin.filter(|_| place > 0).map(|begin| later(entry.at.ms_since(begin)));
        let send_at = entry.detail.as_deref().and_then(|detail| detail.strip_prefix(SCHEDULED_FOR));
        let send_at = send_at.and_then(Timestamp::parse);
        let said = |detail: &String| detail.starts_with(TAKEN_BY) || send_at.is_some();
        let detail = entry.detail.filter(|detail| !said(detail));
        view! {
            <li>
                <DateTime at=entry.at/>
                " "
                <StateMark state=entry.status/>
                <span>
                    {words}
                    {send_at
                        .map(|at| {
                            view! { <span class="fine">" (for " <DateTime at with_zone=true/> ")"</span> }
                        })}
                    {detail.map(|detail| aside(format!("({detail})")))} {later.map(aside)}
                </span>
            </li>
        }
    });
    view! { <ol class="timeline">{entries.collect_view()}</ol> }
}

/// Renders a space, and then words in a fainter style.
fn aside(words: String) -> impl IntoView {
    view! {
        " "
        <span class="fine">{words}</span>
    }
}

/// Returns the sentence for a step.
fn told(entry: &TimelineEntry, first: bool) -> String {
    let detail = entry.detail.as_deref();
    let carrier = detail.and_then(|detail| detail.strip_prefix(TAKEN_BY));
    let words = match (entry.status, carrier) {
        (MessageStatus::Queued, _) if !first => "It waits for a carrier again.",
        (MessageStatus::Submitted, Some(carrier)) => {
            return format!("The carrier {carrier} accepted it.");
        }
        (status, _) => meaning(status, detail).unwrap_or(status.step()),
    };
    words.to_owned()
}

/// Formats the time between the first step and a later one.
fn later(ms: i64) -> String {
    let ms = ms.max(0);
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match () {
        () if seconds < 60 => format!("{}.{} s later", seconds, ms % 1000 / 100),
        () if minutes < 60 => format!("{minutes} min {} s later", seconds % 60),
        () => format!("{} h {} min later", grouped(hours), minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use domain::records::TimelineEntry;
    use domain::{MessageStatus, Timestamp};

    use super::{later, told};

    #[test]
    fn steps_are_told_in_words() {
        let step = |status, detail: Option<&str>| TimelineEntry {
            status,
            at: Timestamp::from_unix_ms(0),
            detail: detail.map(str::to_owned),
        };
        for (entry, words) in [
            (
                step(MessageStatus::Submitted, Some("taken by acme")),
                "The carrier acme accepted it.",
            ),
            (step(MessageStatus::Submitted, None), "A carrier accepted it."),
            (
                step(MessageStatus::Failed, Some("handset_unavailable")),
                "The phone was off or out of reach.",
            ),
            (step(MessageStatus::Queued, None), "It waits for a carrier again."),
        ] {
            assert_eq!(told(&entry, false), words);
        }
        for status in MessageStatus::ALL {
            assert_ne!(told(&step(status, None), true), "");
        }
    }

    #[test]
    fn lengths_of_time_are_written_by_their_size() {
        for (ms, words) in [
            (-5, "0.0 s later"),
            (1234, "1.2 s later"),
            (59_999, "59.9 s later"),
            (61_000, "1 min 1 s later"),
            (172_800_000, "48 h 0 min later"),
        ] {
            assert_eq!(later(ms), words);
        }
    }
}
