//! A carrier on the page of the carriers: its state, its figures and its connections.

use std::borrow::Cow;

#[cfg(feature = "ssr")]
use domain::Timestamp;
use domain::carrier_figures::{CarrierCounts, CarrierEvent, CountedRefusal, RecentCounts};
use domain::printable::printable;
use domain::records::{CarrierRecord, MailGap, RefusedReload};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::ui::{DateTime, Fact, StateMark, Table};

/// A carrier, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierNow {
    pub record: CarrierRecord,
    /// The age of the oldest waiting message in seconds, by the server's clock.
    oldest_age_s: Option<i64>,
}

#[cfg(feature = "ssr")]
impl CarrierNow {
    /// Returns the carrier as it is at the time `now`.
    pub fn of(mut record: CarrierRecord, now: Timestamp) -> Self {
        for connection in &mut record.connections {
            // The page doesn't show this field, but it changes every few seconds. With a fixed
            // value, two carriers that look the same on the page compare as equal.
            connection.updated_at = connection.since;
        }
        let oldest = record.oldest_waiting_at;
        Self { record, oldest_age_s: oldest.map(|at| now.ms_since(at).max(0) / 1000) }
    }
}

/// Renders a carrier's state and figures.
pub fn facts(carrier: &CarrierNow) -> impl IntoView + use<> {
    let oldest = carrier.oldest_age_s.map(age);
    let carrier = &carrier.record;
    let (state, waiting) = (carrier.state, carrier.waiting);
    let (unmatched, matched) = (carrier.receipts_unmatched, carrier.receipts_matched);
    let unknown_state = carrier.receipts_unknown_state;
    let drained =
        carrier.drained_at.map(|at| view! { <span class="fine">" since " <DateTime at/></span> });
    let since = carrier.since.filter(|_| carrier.drained_at.is_none());
    let since = since.map(|at| view! { <Fact term="Since"><DateTime at/></Fact> });
    let reason = carrier.reason.as_deref().map(printable).map(Cow::into_owned);
    let reason = reason.map(|reason| view! { <Fact term="Reason">{reason}</Fact> });
    let held = carrier.held_since.map(|at| {
        view! { <Fact term="All messages held"><span>"since "<DateTime at/></span></Fact> }
    });
    view! {
        <dl class="facts">
            <Fact term="State">
                <StateMark state=state/>
                {drained}
            </Fact>
            {since}
            {reason}
            {held}
            <Fact term="Waiting messages" class="figures">{waiting.to_string()}</Fact>
            <Fact term="Age of the oldest" class="figures">
                {oldest.unwrap_or_else(|| "none waits".to_owned())}
            </Fact>
            <Fact term="Receipts for unknown messages" class="figures">
                {format!("{unmatched} unmatched, {matched} matched later")}
            </Fact>
            <Fact term="Receipts with an unknown state" class="figures">
                {unknown_state.to_string()}
            </Fact>
        </dl>
    }
}

/// Renders a carrier's figures of the last minutes, hour and day.
pub fn figures(carrier: &CarrierNow) -> AnyView {
    let RecentCounts { five_minutes, hour, day } = carrier.record.recent;
    let rows = [("5 min", five_minutes), ("hour", hour), ("day", day)];
    let count = |event| move |row: &(&str, CarrierCounts)| row.1.get(event).to_string();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    Table::wide(&rows)
        .column("Last", |row| row.0)
        .amount("Accepted", count(CarrierEvent::Accepted))
        .amount("Refused", count(CarrierEvent::Refused))
        .amount("Deferred", count(CarrierEvent::Deferred))
        .amount("Throttled", count(CarrierEvent::Throttled))
        .amount("Unanswered", count(CarrierEvent::Unanswered))
        .amount("Delivered", count(CarrierEvent::Delivered))
        .amount("Failed", count(CarrierEvent::Failed))
        .amount("Expired", count(CarrierEvent::Expired))
        .amount("Delivery rate", move |row| {
            or_dash(row.1.delivered_percent().map(|percent| format!("{percent} %")))
        })
        .amount("Receipts p50, p95", move |row| {
            let [p50, p95] = [50, 95].map(|percent| row.1.receipt_within_s(percent).map(within));
            format!("{}, {}", or_dash(p50), or_dash(p95))
        })
        .view()
}

/// Formats the upper bound of a time.
fn within(seconds: u32) -> String {
    format!("≤ {}", age(i64::from(seconds)))
}

/// Renders why a carrier refused submits lately.
pub fn refusals(carrier: &CarrierNow) -> Option<AnyView> {
    let rows = carrier.record.refusals.iter().map(|CountedRefusal { reason, count }| {
        view! { <li>{format!("{count} × {}", printable(reason))}</li> }
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| {
        view! {
            <p>"Submits refused in the last hour, by reason:"</p>
            <ul class="figures">{rows}</ul>
        }
        .into_any()
    })
}

/// Renders a carrier's connections.
pub fn connections(carrier: &CarrierNow) -> AnyView {
    let connections = &carrier.record.connections;
    if connections.is_empty() {
        return view! { <p class="empty">"No running process has a connection to this carrier."</p> }
        .into_any();
    }
    Table::wide(connections)
        .styled("figures", "Connection", |connection| {
            format!("{}.{}", connection.node, connection.number)
        })
        .state("State", |connection| connection.state)
        .time("Since (UTC)", |connection| connection.since)
        .amount("In flight", |connection| {
            format!("{} of {}", connection.in_flight, connection.window)
        })
        .amount("Per second", |connection| connection.rate)
        .amount("Throttled", |connection| connection.throttled)
        .time("Error seen (UTC)", |connection| connection.last_error_at)
        .view()
}

/// Renders the last errors of a carrier's connections, except the one that is the carrier's reason.
pub fn last_errors(carrier: &CarrierNow) -> Option<AnyView> {
    let record = &carrier.record;
    let others = record.connections.iter().filter_map(|connection| {
        let error = connection.last_error.as_deref()?;
        let is_other = record.reason.as_deref() != Some(error);
        is_other.then(|| {
            let number = format!("{}.{}", connection.node, connection.number);
            let text = format!("Last error of connection {number}: {}", printable(error));
            view! { <li>{text}</li> }
        })
    });
    let others: Vec<_> = others.collect();
    (!others.is_empty()).then(|| view! { <ul class="fine">{others}</ul> }.into_any())
}

/// Warns staff that nothing is sent.
pub fn held_warning() -> impl IntoView {
    view! {
        <p class="notice">
            "The database was restored from a backup. No messages are sent until the operator has \
             decided about those that were waiting then. Ask the operator to run "
            <code>"heliograph message reconcile"</code>"."
        </p>
    }
}

/// Warns staff that they get no mail when a carrier fails.
pub fn mail_gap_warning(gap: MailGap) -> impl IntoView {
    let (why, what) = match gap {
        MailGap::NoServer => {
            ("no mail server is set up", "Ask the operator to set \"smtp_url\" and restart.")
        }
        MailGap::NoRecipient => (
            "no member of staff with a confirmed email wants these mails",
            "Confirm your email, and turn the mails on at /account/mails.",
        ),
    };
    let sentence = format!(
        "No mail leaves when a carrier is down or degraded, because {why}. {what} Until then, \
         watch this page or the metrics."
    );
    view! { <p class="notice">{sentence}</p> }
}

/// Warns staff that processes keep their earlier settings.
pub fn reload_warning(refused: &[RefusedReload]) -> Option<AnyView> {
    let rows = refused.iter().map(|RefusedReload { node, at, error }| {
        let error = printable(error).into_owned();
        view! { <li>{format!("Process {node}, ")} <DateTime at=*at/> ": " {error}</li> }
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| {
        view! {
            <div class="notice">
                <p>
                    "The settings have an error and weren't reloaded. The server goes on with the \
                     earlier settings. Ask the operator to correct the file and to run "
                    <code>"heliograph carrier reload"</code>"."
                </p>
                <ul>{rows}</ul>
            </div>
        }
        .into_any()
    })
}

/// Formats a time span in its two largest units.
fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn an_age_has_its_two_largest_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3_599, "59 min 59 s"),
            (3_660, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }
}
